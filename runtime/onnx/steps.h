// Adds the helper nodes and constants that an op is rewritten into.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

class Steps {
 public:
  explicit Steps(Graph& graph) : graph_(graph) {}

  // The first result of a new node; left-out inputs at the end are dropped.
  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
    const NodeId node = graph_.AddNode(op, std::move(inputs), std::move(attributes));
    return graph_.node(node).outputs[0];
  }
  ValueId Constant(const std::string& name, Tensor tensor) {
    return graph_.AddConstant(name, std::move(tensor));
  }
  ValueId Float(double value) {
    return Constant("", Tensor::FloatScalar(static_cast<float>(value)));
  }
  ValueId Int64(int64_t value) {
    return Constant("", Tensor::FromVector<int64_t>(DType::kInt64, {}, {value}));
  }
  ValueId Int64s(std::vector<int64_t> values) { return Constant("", Tensor::Int64s(values)); }
  ValueId ToFloat(ValueId value) { return Add("Cast", {value}, {{"to", int64_t{1}}}); }

  // Dims [start, end) of `value` as a vector; counted from the end where negative.
  ValueId Dims(ValueId value, int64_t start, std::optional<int64_t> end) {
    Attributes attributes = {{"start", start}};
    if (end.has_value()) attributes.Set("end", *end);
    return Add("Shape", {value}, std::move(attributes));
  }
  // The number of elements of `dims`, as a vector of one.
  ValueId Product(ValueId dims) { return Add("ReduceProd", {dims}); }
  ValueId Concat(std::vector<ValueId> parts) {
    return Add("Concat", std::move(parts), {{"axis", int64_t{0}}});
  }

  // The one integer that `value` is known to be.
  std::optional<int64_t> KnownInt(ValueId value) const {
    const Tensor* tensor = value == kNone ? nullptr : graph_.ConstantOf(value);
    if (tensor == nullptr || tensor->num_elements() != 1) return std::nullopt;
    const auto numbers = tensor->ToInt64s();
    return numbers.ok() ? std::optional(numbers->front()) : std::nullopt;
  }

 private:
  Graph& graph_;
};

}  // namespace reprise
