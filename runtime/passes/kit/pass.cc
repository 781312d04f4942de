#include "runtime/passes/kit/pass.h"

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

class FunctionPass final : public Pass {
 public:
  FunctionPass(absl::string_view name, std::function<absl::StatusOr<bool>(Graph&)> run)
      : name_(name), run_(std::move(run)) {}
  absl::string_view name() const override { return name_; }
  absl::StatusOr<bool> Run(Graph& graph) const override { return run_(graph); }

 private:
  const absl::string_view name_;
  const std::function<absl::StatusOr<bool>(Graph&)> run_;
};

}  // namespace

std::unique_ptr<Pass> PassOf(absl::string_view name,
                             std::function<absl::StatusOr<bool>(Graph&)> run) {
  return std::make_unique<FunctionPass>(name, std::move(run));
}

std::unique_ptr<Pass> PassOfNodes(absl::string_view name,
                                  std::function<absl::StatusOr<bool>(Graph&, NodeId)> rewrite) {
  return PassOf(name, [rewrite = std::move(rewrite)](Graph& graph) -> absl::StatusOr<bool> {
    bool changed = false;
    for (const NodeId id : graph.NodeIds()) {
      if (graph.node(id).removed) continue;
      ASSIGN_OR_RETURN(const bool rewritten, rewrite(graph, id));
      changed |= rewritten;
    }
    return changed;
  });
}

}  // namespace reprise
