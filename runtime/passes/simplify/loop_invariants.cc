#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/control/loop.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

// Frees values that every iteration hands on unchanged: exporters carry a loop's weights along.
absl::StatusOr<bool> LoopInvariantsAt(Graph& graph, NodeId id) {
  if (graph.node(id).op != LoopOp::kName) return false;
  const LoopParts parts(graph.node(id));
  const NodeId step = StepOf(graph, graph.node(id));
  bool changed = false;
  for (size_t i = 0; step != kNone && i < parts.carried; ++i) {
    const ValueId begins = graph.node(step).output(LoopParts::kStepFirstCarried + i);
    const ValueId given = graph.node(id).inputs[LoopParts::kFirstCarried + i];
    const ValueId ends = BeforeIdentities(graph, graph.node(id).inputs[parts.first_result + 1 + i]);
    if (begins == kNone || ends != begins || given == kNone) continue;
    graph.ReplaceAllUses(begins, given);
    const ValueId result = graph.node(id).output(i);
    if (result != kNone) graph.ReplaceAllUses(result, given);
    changed = true;
  }
  return changed;
}

}  // namespace

std::unique_ptr<Pass> LoopInvariants() { return PassOfNodes("loop_invariants", LoopInvariantsAt); }

}  // namespace reprise
