// Which nodes compute the positions along an axis one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// An operand of which a position of the results needs the same position alone.
struct PositionOperand {
  size_t index;
  int64_t axis;  // the operand's dim along which those positions lie
};

// Returns the operands that are read position by position: each position along dim `axis` of the
// results of `node` (all have that dim, of more than one position) is made of theirs and of
// operands that all positions share; nullopt where positions meet, or where no rule for the op is
// known. A Reshape then takes the same positions of its operand to a shape that differs from its
// result's in that dim alone; any other op is applied as it is. `graph`: specialised.
std::optional<std::vector<PositionOperand>> PositionOperandsOf(const Graph& graph, const Node& node,
                                                               int64_t axis);

}  // namespace reprise
