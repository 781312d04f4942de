// Trace: the recorded ops, and which of their results have values. The inside of streams and
// tensors.
//
// Ownership: a value keeps the op that makes it, an op the values that it reads: an unreachable
//            value is gone, and is never computed. A handle is there while a tensor of the
//            program's is: values without one are computed on the way, and kept nowhere.
// Threads:   one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/graph.h"
#include "runtime/lazy/op_stream.h"
#include "runtime/lazy/programs.h"
#include "runtime/lazy/source_location.h"
#include "runtime/lazy/tensor.h"

namespace reprise::lazy {

struct TracedOp;

struct TracedValue {
  std::shared_ptr<StreamState> stream;
  absl::Status status;
  DType dtype = DType::kUndefined;
  Shape shape;
  std::string name;                   // given by the program; may be empty
  std::shared_ptr<TracedOp> made_by;  // null: it has bytes, or a status
  size_t result = 0;
  std::shared_ptr<std::byte> bytes;  // null: not computed
  bool is_constant = false;          // numbers in the source: part of the graph
  bool is_number = false;            // one of them, which may be an input instead: see numbers.h
  bool is_result = false;            // an op made it
  // A parameter: unchangeable, known to programs by its number.
  std::optional<reprise::Tensor> parameter;
  int64_t parameter_number = 0;
  int64_t capture = 0;  // the capture that recorded it; 0: none
  std::weak_ptr<TensorHandle> handle;

  size_t size() const { return static_cast<size_t>(NumElements(shape)) * DTypeSize(dtype); }
  TensorView view() const {
    return {dtype, shape, parameter.has_value() ? parameter->data() : bytes.get()};
  }
  bool has_bytes() const { return bytes != nullptr || parameter.has_value(); }
};
using TracedValuePtr = std::shared_ptr<TracedValue>;

struct TensorHandle {
  TracedValuePtr value;
  static Tensor Wrap(const TracedValuePtr& value);
  static const TracedValuePtr& Of(const Tensor& tensor);
};

struct TracedOp {
  std::string op;
  Attributes attributes;
  std::vector<TracedValuePtr> operands;  // null where one is left out
  std::vector<std::weak_ptr<TracedValue>> results;
  int64_t number = 0;  // order of calls
  SourceLocation at;
};

// A graph of the ops that `wanted` needs, and the values that it reads, in the order of its inputs.
struct TracedGraph {
  Graph graph;
  std::vector<TracedValuePtr> inputs;
  std::vector<TracedValuePtr> outputs;
  std::vector<TracedValuePtr> parameters;  // indexed by leaf
  std::vector<TracedValuePtr> numbers;     // that may be inputs: held ones are constants
  std::vector<std::string> output_names;   // empty: by number
};

struct GraphOptions {
  bool names = false;  // inputs and outputs are called as the program calls them, else by number
  // By position in TracedGraph::numbers: those that are constants. Null: all are.
  const std::vector<bool>* held = nullptr;
};
// Returns the graph that computes `wanted`.
TracedGraph GraphOf(const std::vector<TracedValuePtr>& wanted, const GraphOptions& options);

class StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  StreamState(Engine& engine, OpStreamOptions options)
      : options_(std::move(options)), programs_(engine, options_) {}

  // Records an op of this stream, or of its operands' stream. Returns its results; failed ones have
  // a status.
  static std::vector<Tensor> Call(absl::string_view op, const std::vector<Arg>& operands,
                                  size_t results, Attributes attributes, SourceLocation at);

  Tensor AddLeaf(DType dtype, const Shape& shape, const void* data);
  Tensor AddParameter(reprise::Tensor value);
  // Returns a tensor without a value, for the reason that `status` gives, which the program is
  // told.
  Tensor Refused(const absl::Status& status);

  // Computes every value that is pending and has a handle.
  absl::Status Compute();
  // Computes the same, where anything is pending: allocates nothing else.
  absl::Status ComputePending() { return pending_.empty() ? absl::OkStatus() : Compute(); }
  // Computes `value` now, and all else that is pending. Errors are reported at `at`.
  absl::Status Materialize(const TracedValuePtr& value, SourceLocation at);

  // --- Captures. ---
  bool capturing() const { return capture_ != 0; }
  int64_t BeginCapture();
  // Returns the values that were recorded since and may be reached, in order; or the first error.
  absl::StatusOr<std::vector<TracedValuePtr>> EndCapture();
  void FailCapture(const absl::Status& status);

  // Reports to the program that a tensor has no value, and why.
  absl::Status Report(const absl::Status& status);

  Programs& programs() { return programs_; }
  const OpStreamOptions& options() const { return options_; }
  absl::Status TakeError() { return std::exchange(error_, absl::OkStatus()); }
  OpStreamStats stats() const;

 private:
  Tensor Without(const absl::Status& status);
  std::vector<Tensor> CallHere(absl::string_view op, const std::vector<Arg>& operands,
                               size_t results, Attributes attributes, SourceLocation at);
  absl::StatusOr<std::vector<TracedValuePtr>> Record(absl::string_view op,
                                                     const std::vector<Arg>& operands,
                                                     size_t results, Attributes attributes,
                                                     SourceLocation at);
  absl::StatusOr<TracedValuePtr> OperandOf(const Arg& arg, DType number_dtype);
  // Runs an op that no recipe holds: its result's shape depends on data, or it runs on the host.
  absl::Status RunOnHost(const TracedOp& op, const std::vector<TracedValuePtr>& results);
  absl::Status Run(const std::vector<TracedValuePtr>& wanted);

  const OpStreamOptions options_;
  Programs programs_;
  std::vector<std::weak_ptr<TracedValue>> pending_;
  std::vector<std::weak_ptr<TracedValue>> recorded_;  // ops of the capture that lasts
  int64_t next_op_ = 1;
  int64_t next_parameter_ = 1;
  int64_t next_capture_ = 1;
  int64_t capture_ = 0;
  absl::Status capture_error_;
  absl::Status error_;
};

// Returns "at main.cc:42".
std::string PlaceText(const SourceLocation& at);
// Returns the bytes of a new tensor, aligned, with room after them for kernels that load whole
// vectors.
std::shared_ptr<std::byte> NewBytes(size_t bytes);

}  // namespace reprise::lazy
