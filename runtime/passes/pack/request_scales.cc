#include "runtime/passes/pack/request_scales.h"

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/quantized/quantize_op.h"

namespace reprise {
namespace {}  // namespace

std::vector<std::string> ScaleByRequest(Graph& graph) {
  std::vector<std::string> replaced;
  for (const NodeId id : graph.NodeIds()) {
    Node& node = graph.node(id);
    if (node.op != DynamicQuantizeLinearOp::kName) continue;
    replaced.push_back(NodeLabel(node));
    node.op = SegmentDynamicQuantizeOp::kName;
  }
  return replaced;
}

bool HasRequestScales(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    return graph.node(id).op == SegmentDynamicQuantizeOp::kName;
  });
}

}  // namespace reprise
