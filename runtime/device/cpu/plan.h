// Plan: the ways to run one node on this device, each ready to be offered and to be bound.
//
// A family of ops has a file plan_<family>.cc with one plan function an op; cpu_device.cc lists
// them. A plan function looks at dtypes, shapes and attributes only and returns its candidates,
// cheapest first; none where the reference kernel has to do.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/cpu_info.h"
#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/elementwise.h"
#include "runtime/device/cpu/gemm.h"
#include "runtime/device/cpu/parts.h"
#include "runtime/device/cpu/rows.h"
#include "runtime/device/cpu/typed_loops.h"
#include "runtime/device/device.h"
#include "runtime/device/gemm_provider.h"
#include "runtime/ops/windows.h"

namespace reprise::cpu {

class ForeignBlas;
class WeightMemory;

// The kernels that a device may use.
struct CpuTarget {
  explicit CpuTarget(Isa isa, GemmProvider gemm_provider = GemmProvider::kAuto,
                     std::shared_ptr<const ForeignBlas> blas = nullptr,
                     int max_threads = AvailableCpus())
      : isa(isa),
        gemm_provider(gemm_provider),
        scratch_parts(std::clamp(max_threads, 1, kMaxScratchParts)),
        blas(std::move(blas)),
        gemm(GemmKernelsFor(isa)),
        attention(AttentionKernelsFor(isa)),
        tile_attention(TileAttentionKernelsFor(isa)),
        rows(RowKernelsFor(isa)),
        elementwise(ElementwiseKernelsFor(isa)),
        typed(TypedKernelsFor(isa)) {}

  static constexpr int kMaxScratchParts = 16;

  Isa isa;
  GemmProvider gemm_provider;
  int scratch_parts;  // that workspaces are planned for, at most; see PartsWithScratch
  std::shared_ptr<const ForeignBlas> blas;  // null: there is none, or it is not wanted
  const GemmKernels& gemm;
  const AttentionKernels& attention;
  const AttentionKernels* tile_attention;  // null: there are none
  const RowKernels& rows;
  const ElementwiseKernels& elementwise;
  const TypedKernels& typed;
};

// A node with what is known of its operands.
class NodeView {
 public:
  NodeView(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)) {}

  const Node& node() const { return node_; }
  const std::string& op() const { return node_.op; }
  const Attributes& attributes() const { return node_.attributes; }
  size_t num_inputs() const { return node_.inputs.size(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_input(size_t i) const { return node_.input(i) != kNone; }
  bool has_output(size_t i) const { return node_.output(i) != kNone; }
  // An output that somebody reads, or the graph returns.
  bool output_is_used(size_t i) const {
    const ValueId id = node_.output(i);
    return id != kNone && (!graph_.value(id).users.empty() || graph_.IsOutput(id));
  }
  DType dtype(size_t i) const {
    return has_input(i) ? graph_.value(node_.inputs[i]).dtype : DType::kUndefined;
  }
  const Shape& shape(size_t i) const { return *graph_.value(node_.inputs[i]).shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  DType out_dtype(size_t i = 0) const { return graph_.value(node_.outputs[i]).dtype; }
  const Shape& out_shape(size_t i = 0) const { return *graph_.value(node_.outputs[i]).shape; }
  bool is_parameter(size_t i) const {
    return has_input(i) && graph_.value(node_.inputs[i]).kind == Value::Kind::kParameter;
  }
  // Null where the input is no parameter.
  ParameterExprPtr parameter(size_t i) const {
    return is_parameter(i) ? graph_.value(node_.inputs[i]).parameter : nullptr;
  }
  // The value, where it is known at capture.
  const Tensor* constant(size_t i) const { return graph_.ConstantOf(node_.input(i)); }

  // Rows of the batch axis that output 0 is made of, one equal block each; 0: not known.
  int64_t batch_rows() const {
    return has_output(0) ? graph_.value(node_.outputs[0]).batch_rows : 0;
  }

  // Every operand that is there is of this dtype, outputs included.
  bool AllOf(DType wanted) const;
  // Bytes of all operands: what a launch must at least move.
  double OperandBytes() const;
  // Of them, those of parameters.
  double ParameterBytes() const;

 private:
  const Graph& graph_;
  const Node& node_;
};

// NodeView::batch_rows where `batch` elements are as many for each of these; else 0.
inline int64_t WholeBatchRows(const NodeView& node, int64_t batch) {
  return batch % std::max<int64_t>(node.batch_rows(), 1) == 0 ? node.batch_rows() : 0;
}

struct Candidate {
  KernelOption option;
  BoundKernel bound;
};

// A candidate whose kernel is `name` plus the tier, with bytes and detail filled in and the
// estimate made from `flops` and bytes.
template <class Params>
Candidate MakeCandidate(const CpuTarget& target, const NodeView& node, absl::string_view name,
                        KernelFn run, Params params, double flops);
Candidate MakeCandidate(const CpuTarget& target, const NodeView& node, absl::string_view name,
                        KernelFn run, std::shared_ptr<const void> params, double flops);

using PlanFunction = std::vector<Candidate> (*)(const CpuTarget& target, const NodeView& node);

// The first of `count` rows, those of requests, when the replay carries fewer rows (or segments)
// than the recipe has. `batch_rows` as the node had it when it was bound.
inline int64_t LiveOf(int64_t count, int64_t batch_rows, const Frame& frame) {
  const int64_t live = batch_rows == frame.segments ? frame.live_segments : frame.live_rows;
  const bool whole = live == 0 || live >= batch_rows;
  return whole ? count : count / batch_rows * live;
}

// The parts that a launch of `launch.parts` has where its workspace is planned for `planned` at
// once: of a larger team the others have no share.
inline int PartsWithScratch(const LaunchArgs& launch, int planned) {
  return launch.lone_part ? launch.parts : std::min(launch.parts, planned);
}

template <class Params>
Candidate MakeCandidate(const CpuTarget& target, const NodeView& node, absl::string_view name,
                        KernelFn run, Params params, double flops) {
  return MakeCandidate(target, node, name, run,
                       std::shared_ptr<const void>(std::make_shared<const Params>(params)), flops);
}

// plan_linear.cc
std::vector<Candidate> PlanLinear(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanMatMul(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGemm(const CpuTarget& target, const NodeView& node);
// The prepare op of packed weights; see plan_linear.cc.
inline constexpr char kPackOp[] = "cpu.PackPanels";
absl::StatusOr<Tensor> RunPack(const CpuTarget& target, const Attributes& attributes,
                               const Tensor& weights, WeightMemory& memory);
// Of packed int8 weights: of the values, and of their scales unless they are 1.
inline constexpr char kPackInt8Op[] = "cpu.PackInt8Panels";
absl::StatusOr<Tensor> RunPackInt8(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& values, const Tensor* scales,
                                   WeightMemory& memory);

// Of packed weights that are stored in half; see plan_linear.cc.
inline constexpr char kPackHalfOp[] = "cpu.PackHalfPanels";
absl::StatusOr<Tensor> RunPackHalf(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& halves, WeightMemory& memory);

// Of packed weights of a few bits: of the numbers, their scales, and their points unless one point
// is that of all; see plan_blocks.cc.
inline constexpr char kPackBlocksOp[] = "cpu.PackBlockPanels";
absl::StatusOr<Tensor> RunPackBlocks(const CpuTarget& target, const Attributes& attributes,
                                     const Tensor& numbers, const Tensor& scales,
                                     const Tensor* points, WeightMemory& memory);

// Of packed bfloat16 weights; see plan_bf16.cc.
inline constexpr char kPackBf16Op[] = "cpu.PackBf16Panels";
absl::StatusOr<Tensor> RunPackBf16(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& values, const Tensor* scales,
                                   WeightMemory& memory);

// plan_integer.cc
std::vector<Candidate> PlanIntegerLinear(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanMatMulInteger(const CpuTarget& target, const NodeView& node);
// Of its packed weights.
inline constexpr char kPackU8S8Op[] = "cpu.PackU8S8Panels";
absl::StatusOr<Tensor> RunPackU8S8(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& weights, WeightMemory& memory);

// plan_integer_conv.cc
std::vector<Candidate> PlanIntegerConv(const CpuTarget& target, const NodeView& node);

// Of the weights of maps, by tiles; see conv_prepare.h.
inline constexpr char kPackMapsOp[] = "cpu.PackMaps";
absl::StatusOr<Tensor> RunPackMaps(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& weights, WeightMemory& memory);

// Of the forms of packed 3 x 3 kernels; see plan_conv_winograd.cc.
inline constexpr char kPackWinogradOp[] = "cpu.PackWinograd";
absl::StatusOr<Tensor> RunPackWinograd(const CpuTarget& target, const Attributes& attributes,
                                       const Tensor& weights, WeightMemory& memory);

// Of rows of bytes, s8 or u8, each behind its factor and its zero point; see plan_gather.cc.
inline constexpr char kPackInt8RowsOp[] = "cpu.PackInt8Rows";
absl::StatusOr<Tensor> RunPackInt8Rows(const Tensor& values, const Tensor* scales,
                                       const Tensor* points, WeightMemory& memory);

// plan_half.cc
// The parameter of float16 or bfloat16 that `floats` is the Cast of, or the same of what it is
// joined, transposed, cut or reshaped from; null where it is none. With `narrowed` also where the
// model stores floats that a half holds (runtime/ops/narrowed_weights.h).
ParameterExprPtr HalfOf(const ParameterExprPtr& floats, bool narrowed = false);
// A Cast of a half to float32.
absl::StatusOr<Tensor> RunWiden(const CpuTarget& target, const Tensor& half);
// The Cast to a half of floats that it holds.
absl::StatusOr<Tensor> RunNarrow(const CpuTarget& target, const Tensor& floats, DType half);

// plan_append.cc
std::vector<Candidate> PlanAppendRows(const CpuTarget& target, const NodeView& node);

// plan_attention.cc
std::vector<Candidate> PlanAttention(const CpuTarget& target, const NodeView& node);

// plan_conv.cc
std::vector<Candidate> PlanConv(const CpuTarget& target, const NodeView& node);

// plan_conv_transpose.cc
std::vector<Candidate> PlanConvTranspose(const CpuTarget& target, const NodeView& node);
// Of its weights, by the phases of its strides.
inline constexpr char kSplitPhasesOp[] = "cpu.SplitPhases";
absl::StatusOr<Tensor> RunSplitPhases(const Attributes& attributes, const Tensor& weights,
                                      WeightMemory& memory);

// Of its weights, by phases and packed; see plan_conv_transpose_last.cc.
inline constexpr char kPackPhasesOp[] = "cpu.PackPhases";
absl::StatusOr<Tensor> RunPackPhases(const CpuTarget& target, const Attributes& attributes,
                                     const Tensor& weights, WeightMemory& memory);

// plan_depthwise.cc: Conv and reprise.Conv of one channel a group, over planes of `spatial`.
std::vector<Candidate> PlanDepthwise(const CpuTarget& target, const NodeView& node,
                                     const ops::Windows& windows, const Shape& spatial);
// plan_depthwise_channels.cc; the same for planes that are narrower than a vector
std::vector<Candidate> PlanDepthwiseChannels(const CpuTarget& target, const NodeView& node,
                                             const ops::Windows& windows, const Shape& spatial);

// plan_pool.cc
std::vector<Candidate> PlanPool(const CpuTarget& target, const NodeView& node);

// plan_channel_norm.cc
std::vector<Candidate> PlanChannelNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGlobalAverage(const CpuTarget& target, const NodeView& node);

// plan_recurrent.cc
std::vector<Candidate> PlanLstm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGru(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRnn(const CpuTarget& target, const NodeView& node);

// plan_segment.cc: packed tokens
std::vector<Candidate> PlanSegmentAttention(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentReduce(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentSpread(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentCumSum(const CpuTarget& target, const NodeView& node);
// plan_segment_pick.cc
std::vector<Candidate> PlanSegmentPlace(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentPick(const CpuTarget& target, const NodeView& node);
// plan_relative.cc: by the distance of two positions, over rows or packed tokens
std::vector<Candidate> PlanRelativeAttention(const CpuTarget& target, const NodeView& node);
// plan_segment_quantize.cc
std::vector<Candidate> PlanSegmentQuantize(const CpuTarget& target, const NodeView& node);

// plan_forest.cc
std::vector<Candidate> PlanForest(const CpuTarget& target, const NodeView& node);
// plan_classic.cc: the other models of ai.onnx.ml
std::vector<Candidate> PlanClassScores(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSvmScores(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCategoryIndex(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanDistances(const CpuTarget& target, const NodeView& node);

// plan_resize.cc
std::vector<Candidate> PlanResize(const CpuTarget& target, const NodeView& node);

// plan_topk.cc
std::vector<Candidate> PlanTopK(const CpuTarget& target, const NodeView& node);

// plan_places.cc
std::vector<Candidate> PlanPlaces(const CpuTarget& target, const NodeView& node);

// plan_rows.cc
std::vector<Candidate> PlanLayerNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRmsNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanAddLayerNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRotary(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSoftmax(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanReduce(const CpuTarget& target, const NodeView& node);

// plan_gather.cc
std::vector<Candidate> PlanGather(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanEmbeddingSum(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCheckRange(const CpuTarget& target, const NodeView& node);

// plan_grid_sample.cc
std::vector<Candidate> PlanGridSample(const CpuTarget& target, const NodeView& node);

// plan_scatter.cc
std::vector<Candidate> PlanGatherElements(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGatherNd(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanScatterElements(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanScatterNd(const CpuTarget& target, const NodeView& node);

// plan_pad.cc
std::vector<Candidate> PlanPad(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanTrilu(const CpuTarget& target, const NodeView& node);

// plan_elementwise.cc: float32
std::vector<Candidate> PlanUnary(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGelu(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanBinary(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanPow(const CpuTarget& target, const NodeView& node);
// Clip and the functions with constants.
std::vector<Candidate> PlanShaped(const CpuTarget& target, const NodeView& node);

// plan_quantize.cc
std::vector<Candidate> PlanQuantize(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanDequantize(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanFakeQuantize(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanDynamicQuantize(const CpuTarget& target, const NodeView& node);

// plan_typed.cc: other dtypes, comparisons, logic,
// Cast between any two dtypes and Where of any
std::vector<Candidate> PlanTypedMath(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCompare(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanLogic(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSpecial(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCast(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanWhere(const CpuTarget& target, const NodeView& node);

// plan_movement.cc
std::vector<Candidate> PlanTranspose(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSlice(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanExpand(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanTile(const CpuTarget& target, const NodeView& node);
// DepthToSpace and SpaceToDepth.
std::vector<Candidate> PlanBlocks(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanConcat(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSplit(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
