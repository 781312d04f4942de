#include "runtime/base/status_macros.h"
#include "runtime/passes/fold.h"
#include "runtime/passes/passes.h"

namespace reprise {
namespace {

// A larger result is computed when the graph runs.
constexpr int64_t kMaxFoldedBytes = 64 << 20;

class FoldConstantsPass : public Pass {
 public:
  absl::string_view name() const override { return "fold_constants"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (NodeId id : graph.NodeIds()) {
      if (graph.node(id).removed) continue;
      ASSIGN_OR_RETURN(const bool folded, FoldNode(graph, id, kMaxFoldedBytes));
      changed |= folded;
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> FoldConstants() { return std::make_unique<FoldConstantsPass>(); }

}  // namespace reprise
