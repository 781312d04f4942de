#include "runtime/onnx/small_weights.h"

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

// The node adds the line `value` to products.
bool AddsBias(const Graph& graph, const Node& node, ValueId value) {
  const Shape& shape = *graph.value(value).shape;
  if (node.op != "Add" || shape.size() != 1 || shape[0] < 2) return false;
  const ValueId other = node.inputs[0] == value ? node.inputs[1] : node.inputs[0];
  if (other == kNone || other == value) return false;
  const NodeId producer = graph.value(other).producer;
  if (producer == kNone || !FactsOf(graph.node(producer).op).Is(kMultipliesWeights)) return false;
  // Products of data with data are scores, to which masks are added.
  return absl::c_any_of(graph.node(producer).inputs, [&](ValueId input) {
    if (input == kNone) return false;
    const Value::Kind kind = graph.value(input).kind;
    return kind == Value::Kind::kParameter || kind == Value::Kind::kConstant;
  });
}

bool IsWeightOf(const Graph& graph, const Node& node, ValueId value) {
  if (AddsBias(graph, node, value)) return true;
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
