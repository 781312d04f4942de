#include "runtime/passes/kit/branches.h"

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"

namespace reprise {

bool HasBranches(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(),
                        [&](NodeId id) { return graph.node(id).op == IfOp::kName; });
}

const Tensor* KnownCondition(const Graph& graph, NodeId id) {
  const ValueId condition = graph.node(id).input(0);
  const Tensor* known = graph.ConstantOf(condition);
  if (known == nullptr || graph.value(condition).overridable) return nullptr;
  return known->dtype() == DType::kBool && known->num_elements() == 1 ? known : nullptr;
}

std::vector<ValueId> BranchTaken(const Graph& graph, NodeId id, bool condition) {
  const Node& node = graph.node(id);
  const size_t results = node.inputs.size() / 2;
  std::vector<ValueId> taken;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    taken.push_back(node.inputs[1 + i + (condition ? 0 : results)]);
  }
  return taken;
}

void TakeBranch(Graph& graph, NodeId id, bool condition) {
  const std::vector<ValueId> taken = BranchTaken(graph, id, condition);
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != kNone) graph.ReplaceAllUses(outputs[i], taken[i]);
  }
  graph.RemoveNode(id);
}

}  // namespace reprise
