#include "runtime/passes/pack/request_scales.h"

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op.h"

namespace reprise {
namespace {

constexpr char kByRequest[] = "reprise.SegmentDynamicQuantizeLinear";

}  // namespace

std::vector<std::string> ScaleByRequest(Graph& graph) {
  std::vector<std::string> replaced;
  for (const NodeId id : graph.NodeIds()) {
    Node& node = graph.node(id);
    if (node.op != "DynamicQuantizeLinear") continue;
    replaced.push_back(NodeLabel(node));
    node.op = kByRequest;
  }
  return replaced;
}

bool HasRequestScales(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(),
                        [&](NodeId id) { return graph.node(id).op == kByRequest; });
}

}  // namespace reprise
