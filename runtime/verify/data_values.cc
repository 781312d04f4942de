#include "runtime/verify/data_values.h"

#include "absl/algorithm/container.h"
#include "runtime/ops/movement/shape_op.h"

namespace reprise {

std::set<ValueId> FindDataValues(const Graph& graph) {
  std::set<ValueId> data(graph.inputs().begin(), graph.inputs().end());
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op == ShapeOp::kName || node.op == SizeOp::kName) continue;
    const auto is_data = [&](ValueId input) { return data.contains(input); };
    if (absl::c_any_of(node.inputs, is_data)) {
      data.insert(node.outputs.begin(), node.outputs.end());
    }
  }
  data.erase(kNone);
  return data;
}

}  // namespace reprise
