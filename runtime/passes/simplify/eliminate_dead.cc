#include "runtime/graph/graph.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

absl::StatusOr<bool> EliminateDeadIn(Graph& graph) {
  const size_t nodes = graph.live_nodes();
  if (!graph.Compact()) return absl::InvalidArgumentError("the graph has a cycle");
  return graph.live_nodes() != nodes;
}

}  // namespace

std::unique_ptr<Pass> EliminateDead() { return PassOf("eliminate_dead", EliminateDeadIn); }

}  // namespace reprise
