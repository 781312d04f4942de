#include "tests/testing/interpreter.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"

namespace reprise {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;

}  // namespace

absl::StatusOr<Tensor> EvaluateParameter(const ParameterExpr& expr,
                                         absl::Span<const Tensor> parameters) {
  if (expr.is_constant()) return expr.constant();
  if (expr.is_leaf()) {
    if (expr.index() >= static_cast<int>(parameters.size())) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", expr.index(), " is missing"));
    }
    return parameters[expr.index()].Aligned();
  }
  Node node;
  node.op = expr.op();
  node.attributes = expr.attributes();
  node.outputs = {0};
  std::vector<std::optional<Tensor>> inputs;
  for (const ParameterExprPtr& input : expr.inputs()) {
    if (input == nullptr) {
      inputs.emplace_back();
    } else {
      ASSIGN_OR_RETURN(inputs.emplace_back(), EvaluateParameter(*input, parameters));
    }
    node.inputs.push_back(input == nullptr ? kNone : 0);
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, inputs, kMaxBytes));
  return results[0];
}

absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph,
                                              const std::map<std::string, Tensor>& inputs,
                                              absl::Span<const Tensor> parameters) {
  std::vector<std::optional<Tensor>> values(graph.num_values());
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kConstant) values[id] = value.constant;
    if (value.kind == Value::Kind::kParameter) {
      ASSIGN_OR_RETURN(values[id], EvaluateParameter(*value.parameter, parameters));
      if (values[id]->dtype() != value.dtype || values[id]->shape() != *value.shape) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameter '", value.name, "' is ", ShapeToString(values[id]->shape())));
      }
    }
    if (value.kind == Value::Kind::kInput) {
      auto it = inputs.find(value.name);
      if (it == inputs.end() || it->second.dtype() != value.dtype ||
          it->second.shape() != *value.shape) {
        return absl::InvalidArgumentError(
            absl::StrCat("input '", value.name, "' is missing or of another type"));
      }
      values[id] = it->second;
    }
  }
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    std::vector<std::optional<Tensor>> operands;
    for (ValueId input : node.inputs) {
      operands.push_back(input == kNone ? std::nullopt : values[input]);
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, operands, kMaxBytes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      const Value& value = graph.value(node.outputs[i]);
      if (value.shape.has_value() && results[i].shape() != *value.shape) {
        return absl::InvalidArgumentError(
            absl::StrCat(NodeLabel(node), ": result ", ShapeToString(results[i].shape()),
                         ", the graph says ", ShapeToString(*value.shape)));
      }
      values[node.outputs[i]] = std::move(results[i]);
    }
  }
  std::vector<Tensor> outputs;
  for (ValueId id : graph.outputs()) outputs.push_back(*values[id]);
  return outputs;
}

double LargestDifference(const Tensor& a, const Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return kInfinity;
  const std::vector<double> x = a.ToDoubles();
  const std::vector<double> y = b.ToDoubles();
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] == y[i]) continue;
    const double difference = std::abs(x[i] - y[i]);
    if (std::isnan(difference)) return kInfinity;
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace reprise
