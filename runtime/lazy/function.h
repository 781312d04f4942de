// Function: a function of tensors that one option of the stream runs in one of three ways.
//
//   Function layer(stream, [&](const std::vector<Tensor>& in) {
//     return std::vector<Tensor>{Relu(MatMul(in[0], w) + in[1])};
//   });
//   absl::StatusOr<std::vector<Tensor>> out = layer({x, bias});
//
// kEager  the body is called, and each op of it computed.
// kLazy   the body is called, and the ops that it accumulated are computed after it.
// kGraph  the body is called once for each set of dtypes and shapes of its operands, inside a
//         capture; later calls replay that, and call nothing.
//
// So in kGraph the body must do the same for all operands of equal shapes: decisions that depend on
// values cannot be captured, and end with an error. Results have memory of their own in all modes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/lazy/capture.h"
#include "runtime/lazy/op_stream.h"

namespace reprise::lazy {

class Function {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  Function(OpStream& stream, Body body) : stream_(stream), body_(std::move(body)) {}

  absl::StatusOr<std::vector<Tensor>> operator()(const std::vector<Tensor>& operands);

  // Returns the number of graphs that were captured so far.
  size_t num_graphs() const { return graphs_.size(); }

 private:
  struct Captured {
    CapturedGraph graph;
    std::vector<Tensor> operands;  // the graph reads their memory
    std::vector<std::string> outputs;
  };
  absl::Status CaptureFor(const std::vector<Tensor>& operands, Captured& captured);

  OpStream& stream_;
  const Body body_;
  std::map<std::string, std::unique_ptr<Captured>> graphs_;  // keyed by dtypes and shapes
};

}  // namespace reprise::lazy
