#include "runtime/recipe/row_rules.h"

#include <optional>

#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/index_map.h"

namespace reprise {

bool RowRules::KeepsRowsApart(const Node& node) const {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr) return false;
  // Blocks stay blocks under any shape whose dim 0 is cut at their borders.
  if (row->Has(kView)) return IsMarked(node, 0);
  const std::optional<IndexMap> map = IndexMapOf(graph_, node);
  if (!map.has_value()) return false;
  bool any = false, others = false, by_segments = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.input(i) == kNone) continue;
    const int64_t dim = map->DimTo(i, 0);
    if (dim < 0) {
      others = others || IsMarked(node, i);
      continue;
    }
    const Link link = map->operands[i][static_cast<size_t>(dim)].link;
    by_segments = by_segments || link == Link::kSegment;
    if (dim != 0 || !IsMarked(node, i)) return false;
    if (link != Link::kParallel && link != Link::kSegment) return false;
    any = true;
  }
  // Where segments lie is told by one operand for all of them.
  return any && (!others || by_segments);
}

bool RowRules::ReadsLiveRowsAlone(const Node& node) {
  // Segments hold live tokens and no others.
  return FactsOf(node.op).Is(kOfSegments) || (node.op == RelativeAttentionOp::kName &&
                                              node.input(RelativeAttentionOp::kSegments) != kNone);
}

}  // namespace reprise
