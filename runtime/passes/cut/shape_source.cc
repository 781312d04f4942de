#include "runtime/passes/cut/shape_source.h"

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

ValueId ShapeSource(const Graph& graph, ValueId id) {
  while (graph.value(id).kind == Value::Kind::kResult) {
    const Node& node = graph.node(graph.value(id).producer);
    const bool same_shape = (node.inputs.size() == 1 && FindOp(node.op)->Has(kElementwise)) ||
                            FactsOf(node.op).Is(kShapeOfFirst);
    if (!same_shape || node.outputs[0] != id) break;
    id = node.inputs[0];
  }
  return id;
}

}  // namespace

ValueId OperandOf(const Graph& graph, NodeId id, size_t i) {
  const Node& node = graph.node(id);
  const ValueId operand = node.inputs[i];
  const bool shape_alone = FactsOf(node.op).sizes == Sizes::kOfShape;
  return shape_alone && operand != kNone ? ShapeSource(graph, operand) : operand;
}

}  // namespace reprise
