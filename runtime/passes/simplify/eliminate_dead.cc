#include "runtime/graph/graph.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

class EliminateDeadPass : public Pass {
 public:
  absl::string_view name() const override { return "eliminate_dead"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    const size_t nodes = graph.live_nodes();
    if (!graph.Compact()) return absl::InvalidArgumentError("the graph has a cycle");
    return graph.live_nodes() != nodes;
  }
};

}  // namespace

std::unique_ptr<Pass> EliminateDead() { return std::make_unique<EliminateDeadPass>(); }

}  // namespace reprise
