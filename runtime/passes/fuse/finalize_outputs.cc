#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Returns the value whose bytes `id` is a view of: itself, or the start of a chain of views.
ValueId Storage(const Graph& graph, ValueId id) {
  while (graph.value(id).kind == Value::Kind::kResult) {
    const Node& node = graph.node(graph.value(id).producer);
    const OpRow* row = FindOp(node.op);
    // An Identity becomes a copy in front of an output.
    if (row == nullptr || !row->Has(kView) || node.outputs[0] != id) break;
    id = node.inputs[0];
  }
  return id;
}

absl::StatusOr<bool> FinalizeOutputsIn(Graph& graph) {
  HashSet<ValueId> taken;
  std::vector<std::pair<size_t, ValueId>> copies;  // position among the outputs, copy
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId id = graph.outputs()[i];
    const ValueId storage = Storage(graph, id);
    // Storage that two outputs share belongs to the first; the rest are copied from it.
    if (graph.value(storage).kind == Value::Kind::kResult && taken.insert(storage).second) {
      continue;
    }
    ASSIGN_OR_RETURN(const ValueId copy, AddInferred(graph, IdentityOp::kName, {id}));
    copies.emplace_back(i, copy);
  }
  for (const auto& [position, copy] : copies) graph.SetOutput(position, copy);
  return !copies.empty();
}

}  // namespace

std::unique_ptr<Pass> FinalizeOutputs() { return PassOf("finalize_outputs", FinalizeOutputsIn); }

}  // namespace reprise
