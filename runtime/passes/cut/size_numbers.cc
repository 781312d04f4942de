#include "runtime/passes/cut/size_numbers.h"

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

constexpr int64_t kMostNumbers = 64;

// Returns whether results have no more elements than the operands together.
bool KeepsFew(const Node& node) {
  const OpFacts& facts = FactsOf(node.op);
  return FindOp(node.op)->Has(kElementwise) || facts.Is(kReduces) ||
         (facts.OnlyMoves() && facts.elements != Elements::kRepeated);
}

}  // namespace

std::vector<bool> FindSizeNumbers(const Graph& graph, const CutAnalysis& analysis) {
  std::vector<bool> found(graph.num_values(), false);
  const auto is_few = [&](ValueId id) {
    if (id == kNone || found[id]) return true;
    const Value& value = graph.value(id);
    return value.kind == Value::Kind::kConstant && value.constant.num_elements() <= kMostNumbers;
  };
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const bool few = FactsOf(node.op).sizes == Sizes::kOfShape ||
                     (KeepsFew(node) && absl::c_all_of(node.inputs, is_few));
    for (const ValueId output : node.outputs) {
      if (output != kNone) found[output] = few && analysis.is_static[output];
    }
  }
  return found;
}

}  // namespace reprise
