#include "runtime/passes/live/live_form.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/live/live_extents.h"
#include "runtime/passes/live/live_outputs.h"
#include "runtime/passes/live/live_rewrite.h"

namespace reprise {

namespace {

// Convolutions of bytes are recognised by the DequantizeLinear in front of them.
bool IsQuantised(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return FactsOf(node.op).SlidesWindows() &&
           graph.ProducerIf(node.input(0), DequantizeLinearOp::kName) != nullptr;
  });
}

}  // namespace

bool HasWindows(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(),
                        [&](NodeId id) { return FactsOf(graph.node(id).op).SlidesWindows(); });
}

absl::StatusOr<LiveForm> MakeLiveForm(const Graph& symbolic, const std::string& batch,
                                      const std::set<std::string>& symbols,
                                      const std::vector<std::string>& wanted,
                                      const std::map<std::string, int64_t>& steps) {
  if (IsQuantised(symbolic)) return absl::UnimplementedError("its windows slide over bytes");
  LiveForm form = {.graph = symbolic};
  for (const std::string& symbol : wanted) {
    LiveAxes axes = {.axis = symbol, .batch = batch, .others = symbols, .steps = steps};
    axes.others.erase(symbol);
    absl::StatusOr<LiveExtents> extents = LiveExtents::Find(form.graph, axes);
    if (!extents.ok()) return extents.status();
    LiveForm::Axis axis = {.symbol = symbol, .smallest = extents->smallest()};
    for (const Extent& extent : extents->all()) {
      if (!extent.is_whole()) axis.extents.push_back(extent);
    }
    LiveRewrite rewrite(form.graph, axes, *std::move(extents));
    rewrite.Run();
    axis.has_input = rewrite.has_input();
    if (!form.graph.Compact()) return absl::InternalError("the live form has a cycle");
    form.axes.push_back(std::move(axis));
  }
  std::vector<LiveOutputs::Axis> live;
  for (const LiveForm::Axis& axis : form.axes) {
    if (!axis.has_input) continue;
    LiveAxes axes = {.axis = axis.symbol, .batch = batch, .others = symbols, .steps = steps};
    axes.others.erase(axis.symbol);
    absl::StatusOr<LiveExtents> extents = LiveExtents::Find(form.graph, axes);
    if (extents.ok()) live.push_back({axis.symbol, *std::move(extents)});
  }
  LiveOutputs(form.graph, std::move(live)).Run();
  if (!form.graph.Compact()) return absl::InternalError("the live form has a cycle");
  return form;
}

}  // namespace reprise
