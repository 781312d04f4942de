// Steps: reads the operands of an op that is rewritten, and adds the helper nodes and constants
// that it becomes. The importer labels them with the node that they come from.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/node_draft.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/reduce/reduce_op.h"

namespace reprise {

class Steps {
 public:
  Steps(NodeDraft& draft, Graph& graph) : draft_(draft), graph_(graph) {}

  ValueId input(size_t i) const { return i < draft_.inputs.size() ? draft_.inputs[i] : kNone; }
  // INVALID_ARGUMENT naming the first of `inputs` that is left out.
  absl::Status Require(std::initializer_list<size_t> inputs) const {
    for (const size_t i : inputs) {
      if (input(i) == kNone) {
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " is left out"));
      }
    }
    return absl::OkStatus();
  }
  // Ends the op as `op` of `inputs`.
  absl::Status Become(absl::string_view op, std::vector<ValueId> inputs,
                      Attributes attributes = {}) {
    while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
    draft_.op = std::string(op);
    draft_.inputs = std::move(inputs);
    draft_.attributes = std::move(attributes);
    return absl::OkStatus();
  }

  // Returns the first result of a new node; left-out inputs at the end are dropped.
  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
    const NodeId node = graph_.AddNode(op, std::move(inputs), std::move(attributes));
    return graph_.node(node).outputs[0];
  }
  // `name`: its role in the op.
  ValueId Constant(absl::string_view name, Tensor tensor) {
    return graph_.AddConstant(absl::StrCat(draft_.name, "/", name), std::move(tensor));
  }
  ValueId Float(double value) {
    return graph_.AddConstant("", Tensor::FloatScalar(static_cast<float>(value)));
  }
  ValueId Floats(absl::string_view name, const std::vector<float>& values) {
    const auto size = static_cast<int64_t>(values.size());
    return Constant(name, Tensor::FromVector(DType::kFloat32, {size}, values));
  }
  // In the dtype of `like`.
  ValueId FloatLike(double value, ValueId like) {
    return Add(CastLikeOp::kName, {Float(value), like});
  }
  ValueId Int64(int64_t value) { return graph_.AddConstant("", Tensor::Int64Scalar(value)); }
  ValueId Int64s(std::vector<int64_t> values) {
    return graph_.AddConstant("", Tensor::Int64s(values));
  }
  ValueId Cast(ValueId value, DType to) {
    return Add(CastOp::kName, {value}, {{"to", ops::OnnxNumber(to)}});
  }
  ValueId ToFloat(ValueId value) { return Cast(value, DType::kFloat32); }

  // Dims [start, end) of `value` as a vector; counted from the end where negative.
  ValueId Dims(ValueId value, int64_t start, std::optional<int64_t> end) {
    Attributes attributes = {{"start", start}};
    if (end.has_value()) attributes.Set("end", *end);
    return Add(ShapeOp::kName, {value}, std::move(attributes));
  }
  // Returns the number of elements of `dims`, as a vector of one.
  ValueId Product(ValueId dims) { return Add(ReduceProdOp::kName, {dims}); }
  ValueId Concat(std::vector<ValueId> parts) {
    return Add(ConcatOp::kName, std::move(parts), {{"axis", int64_t{0}}});
  }

  // Returns the one integer that `value` is known to be.
  std::optional<int64_t> KnownInt(ValueId value) const {
    const Tensor* tensor = value == kNone ? nullptr : graph_.ConstantOf(value);
    if (tensor == nullptr || tensor->num_elements() != 1) return std::nullopt;
    const auto numbers = tensor->ToInt64s();
    return numbers.ok() ? std::optional(numbers->front()) : std::nullopt;
  }

 protected:
  NodeDraft& draft_;
  Graph& graph_;
};

}  // namespace reprise
