#include "runtime/passes/match/position_operands.h"

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/index_map.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {

std::optional<std::vector<PositionOperand>> PositionOperandsOf(const Graph& graph, const Node& node,
                                                               int64_t axis) {
  if (node.output(0) == kNone || node.input(0) == kNone) return std::nullopt;
  const Shape& out = *ShapeOf(graph, node.output(0));
  const auto rank = static_cast<int64_t>(out.size());
  if (rank <= axis || out[axis] < 2) return std::nullopt;
  // An operand tells the sizes of all positions. A lookup is a pick itself, and tells of places out
  // of range at all positions. Nothing is saved where elements only go elsewhere. A product of a
  // model's file is matched as it is, as a part of attention, whose queries HoistPicks picks with
  // their masks.
  const OpRow* row = FindOp(node.op);
  if (row == nullptr) return std::nullopt;
  const OpFacts& facts = FactsOf(*row);
  const bool sizes = facts.Is(kTakesSizes) && node.op != ReshapeOp::kName;
  const bool moves = facts.elements == Elements::kMoved || facts.elements == Elements::kJoined;
  const bool matched = facts.Is(kMultipliesWeights) && !row->Has(kInternal);
  const bool attends = facts.map == ops::AttentionMap || facts.map == ops::RelativeAttentionMap;
  if (sizes || moves || matched || attends || facts.Is(kLooksUp) || facts.Is(kKnowsRows)) {
    return std::nullopt;
  }
  const std::optional<IndexMap> map = IndexMapOf(graph, node);
  if (!map.has_value() || !map->IsParallel(axis)) return std::nullopt;
  std::vector<PositionOperand> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int64_t dim = map->DimTo(i, axis);
    if (dim < 0) continue;
    const Shape& shape = *ShapeOf(graph, node.input(i));
    // It lies where numpy would broadcast it, or as in the result.
    const bool stays = dim == axis || dim == axis - (rank - static_cast<int64_t>(shape.size()));
    if (!stays || shape[dim] != out[axis]) return std::nullopt;
    operands.push_back({i, dim});
  }
  return operands;
}

}  // namespace reprise
