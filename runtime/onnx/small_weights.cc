#include "runtime/onnx/small_weights.h"

#include "absl/algorithm/container.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"

namespace reprise {
namespace {

// Scores are scaled, biased and masked before anything else is made of them.
constexpr int kMostSteps = 5;

bool IsKnown(const Graph& graph, ValueId id) {
  const Value::Kind kind = graph.value(id).kind;
  return kind == Value::Kind::kParameter || kind == Value::Kind::kConstant;
}

// The value is a product of data with data, or made of one: scores, to which masks are added.
bool IsMadeOfScores(const Graph& graph, ValueId id, int steps = kMostSteps) {
  const NodeId producer = graph.value(id).producer;
  if (producer == kNone || steps == 0) return false;
  const Node& node = graph.node(producer);
  const OpFacts& facts = FactsOf(node.op);
  const auto known = [&](ValueId input) { return input != kNone && IsKnown(graph, input); };
  if (facts.Is(kMultipliesWeights)) return absl::c_none_of(node.inputs, known);
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || !row->Has(kElementwise)) return false;
  return absl::c_any_of(node.inputs, [&](ValueId input) {
    return input != kNone && IsMadeOfScores(graph, input, steps - 1);
  });
}

// The node adds the line `value` to products with weights, a number to each column.
bool AddsBias(const Graph& graph, const Node& node, ValueId value, ValueId other) {
  const NodeId producer = graph.value(other).producer;
  if (node.op != AddOp::kName || producer == kNone) return false;
  const Node& product = graph.node(producer);
  if (!FactsOf(product.op).Is(kMultipliesWeights)) return false;
  const int64_t columns = graph.value(value).shape->back();
  return absl::c_any_of(product.inputs, [&](ValueId input) {
    if (input == kNone || !IsKnown(graph, input)) return false;
    const Shape& weights = *graph.value(input).shape;
    return columns > 1 || (!weights.empty() && weights.back() == columns);
  });
}

// Sines are taken of the value: its numbers are those of positions, which passes may read.
bool MakesAngles(const Graph& graph, ValueId id, int steps = kMostSteps) {
  return absl::c_any_of(graph.value(id).users, [&](NodeId user) {
    const Node& node = graph.node(user);
    if (node.op == "Sin" || node.op == "Cos") return true;
    const bool moves = node.op == ConcatOp::kName || node.op == UnsqueezeOp::kName ||
                       node.op == ReshapeOp::kName || node.op == TransposeOp::kName ||
                       node.op == CastOp::kName || node.op == ExpandOp::kName;
    return moves && steps > 0 && MakesAngles(graph, node.outputs[0], steps - 1);
  });
}

// The node scales or shifts data by a line of numbers, one for each feature: the scale of a norm
// that is written out. Scalars and single numbers are what forms are made of (an epsilon, the 0.5
// of a GELU), and masks and slopes of positions are numbers that certificates read.
bool ScalesOrShifts(const Graph& graph, const Node& node, ValueId value, ValueId other) {
  if (node.op != MulOp::kName && node.op != AddOp::kName && node.op != SubOp::kName &&
      node.op != DivOp::kName)
    return false;
  const Shape& shape = *graph.value(value).shape;
  if (shape.back() <= 1 || NumElements(shape) != shape.back()) return false;
  return !IsMadeOfScores(graph, other) && !MakesAngles(graph, node.outputs[0]);
}

bool IsWeightOf(const Graph& graph, const Node& node, ValueId value) {
  if (node.inputs.size() == 2) {
    const ValueId other = node.inputs[0] == value ? node.inputs[1] : node.inputs[0];
    const bool of_data = other != kNone && other != value && !IsKnown(graph, other);
    if (of_data && AddsBias(graph, node, value, other)) return true;
    if (of_data && ScalesOrShifts(graph, node, value, other)) return true;
  }
  const OpFacts& facts = FactsOf(node.op);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == value && !facts.IsWeight(i)) return false;
  }
  return true;
}

bool IsSmallWeight(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const Tensor* constant = graph.ConstantOf(id);
  if (constant == nullptr || value.overridable || value.users.empty() || graph.IsOutput(id) ||
      !IsFloating(constant->dtype()) || constant->num_elements() == 0 ||
      constant->shape().empty()) {
    return false;
  }
  return absl::c_all_of(value.users,
                        [&](NodeId user) { return IsWeightOf(graph, graph.node(user), id); });
}

}  // namespace

void KeepSmallWeights(FileValues& values) {
  Graph& graph = values.model.graph;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    if (!IsSmallWeight(graph, id)) continue;
    const Tensor tensor = *graph.ConstantOf(id);
    const int index = values.KeepParameter(tensor);
    graph.ReplaceWithParameter(id, ParameterExpr::Leaf(index, tensor.dtype(), tensor.shape()));
  }
}

}  // namespace reprise
