#include "runtime/passes/simplify/fold_constants.h"

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/kit/branches.h"
#include "runtime/passes/kit/fold.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

// A larger result is computed when the graph runs.
constexpr int64_t kMaxFoldedBytes = 64 << 20;

absl::StatusOr<bool> FoldConstantsIn(Graph& graph, const LoadBudget* budget) {
  bool changed = false;
  const bool branches = HasBranches(graph);
  FoldAllowance allowance(graph, kMaxFoldedBytes);
  for (NodeId id : graph.NodeIds()) {
    if (graph.node(id).removed) continue;
    if (graph.node(id).op == IfOp::kName) {
      const Tensor* condition = KnownCondition(graph, id);
      if (condition == nullptr) continue;
      ASSIGN_OR_RETURN(const std::vector<int64_t> elements, condition->ToInt64s());
      TakeBranch(graph, id, elements[0] != 0);
      changed = true;
      continue;
    }
    const std::string label = budget == nullptr ? "" : NodeLabel(graph.node(id));
    const auto folded = allowance.Fold(graph, id);
    if (budget != nullptr) RETURN_IF_ERROR(budget->CheckTime(label));
    if (!folded.ok() && branches) continue;
    RETURN_IF_ERROR(folded.status());
    changed |= *folded;
  }
  return changed;
}

}  // namespace

std::unique_ptr<Pass> FoldConstants() { return FoldConstantsWithin(nullptr); }

std::unique_ptr<Pass> FoldConstantsWithin(const LoadBudget* budget) {
  return PassOf("fold_constants",
                [budget](Graph& graph) { return FoldConstantsIn(graph, budget); });
}

}  // namespace reprise
