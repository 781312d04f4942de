// Plan: the ways to run one node on this device, each ready to be offered and to be bound.
//
// This is the contract alone: it knows no op. A plan function looks at dtypes, shapes and
// attributes only and returns its candidates, cheapest first; none where the reference kernel has
// to do. Each family of kernels lists its plan functions in <family>_plans.cc, see kernel_family.h.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/simd/parts.h"
#include "runtime/device/device.h"
#include "runtime/device/gemm_provider.h"

namespace reprise::cpu {

class ForeignBlas;

// The target of a device's kernels. Plan functions ask their families for the kernels of `isa`.
struct CpuTarget {
  explicit CpuTarget(Isa isa, GemmProvider gemm_provider = GemmProvider::kAuto,
                     std::shared_ptr<const ForeignBlas> blas = nullptr,
                     int max_threads = AvailableCpus())
      : isa(isa),
        gemm_provider(gemm_provider),
        scratch_parts(std::clamp(max_threads, 1, kMaxScratchParts)),
        blas(std::move(blas)) {}

  static constexpr int kMaxScratchParts = 16;

  Isa isa;
  GemmProvider gemm_provider;
  int scratch_parts;  // that workspaces are planned for, at most; see PartsWithScratch
  std::shared_ptr<const ForeignBlas> blas;  // null: there is none, or it is not needed
  // A node's kernels add in one order, at any number of rows (Device::one_order): plan functions
  // choose by nothing that depends on rows.
  bool one_order = false;
};

// A node together with the known facts about its operands.
class NodeView {
 public:
  NodeView(const Graph& graph, NodeId id);

  const Node& node() const { return node_; }
  const std::string& op() const { return node_.op; }
  const Attributes& attributes() const { return node_.attributes; }
  size_t num_inputs() const { return node_.inputs.size(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_input(size_t i) const { return node_.input(i) != kNone; }
  bool has_output(size_t i) const { return node_.output(i) != kNone; }
  // Returns whether output `i` is read, or returned by the graph.
  bool output_is_used(size_t i) const;
  DType dtype(size_t i) const;
  const Shape& shape(size_t i) const;
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  DType out_dtype(size_t i = 0) const;
  const Shape& out_shape(size_t i = 0) const;
  bool is_parameter(size_t i) const;
  // Null where the input is no parameter.
  ParameterExprPtr parameter(size_t i) const;
  // Returns the value, where it is known at capture.
  const Tensor* constant(size_t i) const;

  // Returns the rows of the batch axis that output 0 consists of, one equal block each; 0: unknown.
  int64_t batch_rows() const;

  // Returns whether every operand that is there is of this dtype, outputs included.
  bool AllOf(DType wanted) const;
  // Returns the bytes of all operands, which a launch must at least move.
  double OperandBytes() const;
  // Returns the bytes among them that belong to parameters.
  double ParameterBytes() const;

 private:
  const Graph& graph_;
  const Node& node_;
};

// NodeView::batch_rows where it divides `batch`, so that all rows have equal shares; else 0.
inline int64_t WholeBatchRows(const NodeView& node, int64_t batch) {
  return batch % std::max<int64_t>(node.batch_rows(), 1) == 0 ? node.batch_rows() : 0;
}

struct Candidate {
  KernelOption option;
  BoundKernel bound;
};

// Makes a candidate whose kernel is `name` plus the tier, fills in bytes and detail, and estimates
// the time from `flops` and bytes.
template <class Params>
Candidate MakeCandidate(const CpuTarget& target, const NodeView& node, absl::string_view name,
                        KernelFn run, Params params, double flops);
Candidate MakeCandidate(const CpuTarget& target, const NodeView& node, absl::string_view name,
                        KernelFn run, std::shared_ptr<const void> params, double flops);

using Plan = std::vector<Candidate>(const CpuTarget& target, const NodeView& node);

// Returns how many of the first of `count` rows belong to requests, when the replay carries fewer
// rows (or segments) than the recipe has. `batch_rows` as the node had it when it was bound.
inline int64_t LiveOf(int64_t count, int64_t batch_rows, const Frame& frame) {
  const int64_t live = batch_rows == frame.segments ? frame.live_segments : frame.live_rows;
  const bool whole = live == 0 || live >= batch_rows;
  return whole ? count : count / batch_rows * live;
}

// Returns the number of parts that work in a launch whose workspace is planned for `planned`
// parts: in a larger team the others have no share.
inline int PartsWithScratch(const LaunchArgs& launch, int planned) {
  return launch.lone_part ? launch.parts : std::min(launch.parts, planned);
}

template <class Params>
Candidate MakeCandidate(const CpuTarget& target, const NodeView& node, absl::string_view name,
                        KernelFn run, Params params, double flops) {
  return MakeCandidate(target, node, name, run,
                       std::shared_ptr<const void>(std::make_shared<const Params>(params)), flops);
}

}  // namespace reprise::cpu
