#include "runtime/passes/kit/rewrite.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"

namespace reprise {

const Tensor* KnownConstant(const Graph& graph, ValueId value) {
  const Tensor* constant = graph.ConstantOf(value);
  return constant != nullptr && !graph.value(value).overridable ? constant : nullptr;
}

std::optional<double> KnownScalar(const Graph& graph, ValueId value) {
  const Tensor* constant = KnownConstant(graph, value);
  if (constant == nullptr || constant->num_elements() != 1) return std::nullopt;
  return constant->ToDoubles()[0];
}

bool IsNear(double value, double expected) {
  return std::abs(value - expected) <= 1e-5 * std::abs(expected);
}

bool IsScalar(const Graph& graph, ValueId value, double expected) {
  const std::optional<double> scalar = KnownScalar(graph, value);
  return scalar.has_value() && IsNear(*scalar, expected);
}

std::vector<int64_t> LastDimsSwapped(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

ValueId BeforeIdentities(const Graph& graph, ValueId value) {
  while (const Node* node = graph.ProducerIf(value, IdentityOp::kName)) value = node->inputs[0];
  return value;
}

ValueId BeforeReshapes(const Graph& graph, ValueId value) {
  while (const Node* node = graph.ProducerIf(value, ReshapeOp::kName)) value = node->inputs[0];
  return value;
}

const std::optional<Shape>& ShapeOf(const Graph& graph, ValueId value) {
  return graph.value(value).shape;
}

bool HasOneElement(const Graph& graph, ValueId value) {
  return ShapeOf(graph, value).has_value() && NumElements(*ShapeOf(graph, value)) == 1;
}

bool HasShape(const Graph& graph, ValueId value, absl::Span<const int64_t> shape) {
  const std::optional<Shape>& own = ShapeOf(graph, value);
  return own.has_value() && absl::Span<const int64_t>(*own) == shape;
}

bool SameShape(const Graph& graph, ValueId a, ValueId b) {
  return ShapeOf(graph, a).has_value() && ShapeOf(graph, a) == ShapeOf(graph, b);
}

bool IsFloat32(const Graph& graph, ValueId value) {
  return value != kNone && graph.value(value).dtype == DType::kFloat32 &&
         graph.value(value).shape.has_value();
}

bool IsParameter(const Graph& graph, ValueId value) {
  return value != kNone && graph.value(value).kind == Value::Kind::kParameter &&
         !graph.value(value).overridable;
}

bool IsWeight(const Graph& graph, ValueId value) {
  return IsParameter(graph, value) || KnownConstant(graph, value) != nullptr;
}

NodeId OnlyUser(const Graph& graph, ValueId value) {
  return value != kNone && graph.HasOneUse(value) ? graph.value(value).users[0] : kNone;
}

ValueId OtherInput(const Node& node, ValueId value) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return kNone;
  if (node.inputs[0] == value) return node.inputs[1];
  return node.inputs[1] == value ? node.inputs[0] : kNone;
}

absl::StatusOr<ValueId> AddInferred(Graph& graph, absl::string_view op, std::vector<ValueId> inputs,
                                    Attributes attributes, absl::string_view name) {
  const NodeId id = graph.AddNode(op, std::move(inputs), std::move(attributes), 1, name);
  RETURN_IF_ERROR(InferNode(graph, id));
  return graph.node(id).outputs[0];
}

absl::StatusOr<ValueId> AddCast(Graph& graph, ValueId value, DType to) {
  return AddInferred(graph, CastOp::kName, {value}, {{"to", ops::OnnxNumber(to)}});
}

absl::StatusOr<ValueId> AddRangeCheck(Graph& graph, ValueId ids, int64_t rows) {
  if (KnownConstant(graph, ids) != nullptr) return ids;
  return AddInferred(graph, CheckRangeOp::kName, {ids},
                     {{"low", int64_t{0}}, {"high", std::max<int64_t>(rows, 1) - 1}});
}

absl::StatusOr<ValueId> AddReshape(Graph& graph, ValueId value, const Shape& shape) {
  if (HasShape(graph, value, shape)) return value;
  const ValueId sizes =
      graph.AddConstant("", Tensor::Int64s(std::vector<int64_t>(shape.begin(), shape.end())));
  Attributes attributes({{"allowzero", int64_t{1}}});
  if (!IsWeight(graph, value)) {
    return AddInferred(graph, ReshapeOp::kName, {value, sizes}, std::move(attributes));
  }
  return AddWeight(graph, ReshapeOp::kName, std::move(attributes), {value, sizes},
                   graph.value(value).dtype, shape);
}

absl::StatusOr<ValueId> AddWeight(Graph& graph, absl::string_view op, Attributes attributes,
                                  const std::vector<ValueId>& inputs, DType dtype, Shape shape) {
  const bool constant = std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
    return KnownConstant(graph, input) != nullptr;
  });
  if (constant) {
    Node node;
    node.op = std::string(op);
    node.attributes = std::move(attributes);
    node.inputs = inputs;
    node.outputs = {kNone};
    std::vector<std::optional<Tensor>> tensors;
    for (ValueId input : inputs) tensors.emplace_back(graph.value(input).constant);
    ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, tensors, INT64_MAX));
    return graph.AddConstant("", std::move(results[0]));
  }
  std::vector<ParameterExprPtr> operands;
  for (ValueId input : inputs) {
    const Value& value = graph.value(input);
    REPRISE_CHECK(IsWeight(graph, input));
    operands.push_back(IsParameter(graph, input) ? value.parameter
                                                 : ParameterExpr::Constant(value.constant));
  }
  return graph.AddParameter("", ParameterExpr::Apply(std::string(op), std::move(attributes),
                                                     std::move(operands), dtype, std::move(shape)));
}

ValueId AddExpression(Graph& graph, const ParameterExprPtr& expression) {
  if (expression == nullptr) return kNone;
  if (expression->is_constant()) return graph.AddConstant("", expression->constant());
  return graph.AddParameter("", expression);
}

void Replace(Graph& graph, ValueId from, ValueId to) {
  const NodeId producer = ProducerOf(graph, from);
  graph.ReplaceAllUses(from, to);
  if (producer != kNone) RemoveIfDead(graph, producer);
}

void RemoveIfDead(Graph& graph, NodeId node) {
  std::vector<NodeId> stack = {node};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (graph.node(id).removed) continue;
    const bool used = std::any_of(
        graph.node(id).outputs.begin(), graph.node(id).outputs.end(), [&](ValueId output) {
          return output != kNone && (!graph.value(output).users.empty() || graph.IsOutput(output));
        });
    if (used) continue;
    for (ValueId input : graph.node(id).inputs) {
      if (ProducerOf(graph, input) != kNone) stack.push_back(ProducerOf(graph, input));
    }
    graph.RemoveNode(id);
  }
}

}  // namespace reprise
