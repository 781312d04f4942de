#include <cmath>
#include <cstring>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

// Returns the element of a constant all of whose elements are the same.
std::optional<double> SplatOf(const Graph& graph, ValueId value) {
  const Tensor* constant = KnownConstant(graph, value);
  if (constant == nullptr || constant->num_elements() == 0) return std::nullopt;
  const char* bytes = static_cast<const char*>(constant->data());
  const size_t size = DTypeSize(constant->dtype());
  // Shifted by one element, a splat equals itself.
  if (std::memcmp(bytes, bytes + size, constant->bytes() - size) != 0) return std::nullopt;
  return Tensor(constant->dtype(), {}, std::shared_ptr<const void>(std::shared_ptr<void>(), bytes))
      .ToDoubles()[0];
}

// `value` in the shape of `like`: itself, or an Expand of it.
absl::StatusOr<ValueId> ExpandTo(Graph& graph, ValueId value, ValueId like) {
  if (SameShape(graph, value, like)) return value;
  const Shape shape = *ShapeOf(graph, like);
  const ValueId sizes =
      graph.AddConstant("", Tensor::Int64s(std::vector<int64_t>(shape.begin(), shape.end())));
  return AddInferred(graph, ExpandOp::kName, {value, sizes});
}

// Returns a bool constant of one element: ExpandTo and folding make the rest of it.
absl::StatusOr<ValueId> BoolLike(Graph& graph, bool value, ValueId like) {
  const ValueId scalar = graph.AddConstant(
      "", Tensor::FromVector(DType::kBool, {}, std::vector<uint8_t>{static_cast<uint8_t>(value)}));
  return ExpandTo(graph, scalar, like);
}

}  // namespace

absl::StatusOr<ValueId> ArithmeticRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool commutes = node.op == AddOp::kName || node.op == MulOp::kName;
  if (!commutes && node.op != SubOp::kName && node.op != DivOp::kName && node.op != PowOp::kName)
    return kNone;
  const ValueId output = node.outputs[0];
  const double neutral = node.op == AddOp::kName || node.op == SubOp::kName ? 0 : 1;
  for (int side = 1; side >= (commutes ? 0 : 1); --side) {
    const ValueId x = node.inputs[1 - side];
    if (!SameShape(graph, x, output) || graph.value(x).dtype != graph.value(output).dtype) continue;
    if (SplatOf(graph, node.inputs[side]) == neutral) return x;
  }
  if (node.op != DivOp::kName || !IsFloat32(graph, output)) return kNone;
  // A product with the rounded reciprocal is at most one unit in the last place off.
  const std::optional<double> divisor = KnownScalar(graph, node.inputs[1]);
  if (!divisor.has_value()) return kNone;
  const float reciprocal = static_cast<float>(1.0 / *divisor);
  if (!std::isnormal(reciprocal) || !std::isnormal(static_cast<float>(*divisor))) return kNone;
  const Shape shape = *ShapeOf(graph, node.inputs[1]);
  const ValueId x = node.inputs[0];
  const ValueId factor =
      graph.AddConstant("", Tensor::FromVector<float>(DType::kFloat32, shape, {reciprocal}));
  return AddInferred(graph, MulOp::kName, {x, factor});
}

absl::StatusOr<ValueId> VariadicRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool sum = node.op == SumOp::kName || node.op == MeanOp::kName;
  const bool extreme = node.op == MaxOp::kName || node.op == MinOp::kName;
  const std::vector<ValueId> inputs = node.inputs;
  const size_t least = extreme ? 3 : 2;
  if (!(sum || extreme) || inputs.size() < least) return kNone;
  for (const ValueId input : inputs) {
    if (!ShapeOf(graph, input).has_value()) return kNone;
  }
  const bool mean = node.op == MeanOp::kName;
  if (mean && !IsFloat32(graph, node.outputs[0])) return kNone;
  const std::string of_two = sum ? AddOp::kName : node.op;
  ValueId value = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    ASSIGN_OR_RETURN(value, AddInferred(graph, of_two, {value, inputs[i]}));
  }
  if (!mean) return value;
  const ValueId count = graph.AddConstant(
      "", Tensor::FromVector<float>(DType::kFloat32, {}, {static_cast<float>(inputs.size())}));
  return AddInferred(graph, DivOp::kName, {value, count});
}

absl::StatusOr<ValueId> MishRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != MulOp::kName || !ShapeOf(graph, node.outputs[0]).has_value()) return kNone;
  for (int side = 0; side < 2; ++side) {
    const Node* tanh = graph.ProducerIf(node.inputs[side], TanhOp::kName);
    const Node* softplus =
        tanh == nullptr ? nullptr : graph.ProducerIf(tanh->inputs[0], SoftplusOp::kName);
    if (softplus == nullptr || softplus->inputs[0] != node.inputs[1 - side]) continue;
    return AddInferred(graph, MishOp::kName, {softplus->inputs[0]});
  }
  return kNone;
}

absl::StatusOr<ValueId> LogicRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId output = node.output(0);
  if (!ShapeOf(graph, output).has_value()) return kNone;
  if (node.op == NotOp::kName) {
    const Node* inner = graph.ProducerIf(node.inputs[0], NotOp::kName);
    return inner != nullptr ? inner->inputs[0] : kNone;
  }
  if (node.op == WhereOp::kName) {
    const std::optional<double> condition = SplatOf(graph, node.inputs[0]);
    if (condition.has_value()) {
      return ExpandTo(graph, *condition != 0 ? node.inputs[1] : node.inputs[2], output);
    }
    const Node* inverted = graph.ProducerIf(node.inputs[0], NotOp::kName);
    if (inverted == nullptr) return kNone;
    const std::vector<ValueId> inputs = {inverted->inputs[0], node.inputs[2], node.inputs[1]};
    return AddInferred(graph, WhereOp::kName, inputs);
  }
  if (node.op != AndOp::kName && node.op != OrOp::kName) return kNone;
  const bool neutral = node.op == AndOp::kName;
  for (int side = 0; side < 2; ++side) {
    const std::optional<double> known = SplatOf(graph, node.inputs[side]);
    if (!known.has_value()) continue;
    if ((*known != 0) == neutral) return ExpandTo(graph, node.inputs[1 - side], output);
    return BoolLike(graph, !neutral, output);
  }
  return kNone;
}

}  // namespace reprise
