// RangeOf: bounds of the numbers of a mask.
//
// Threads: pure.
#pragma once

#include <optional>

#include "runtime/graph/node.h"

namespace reprise::pack {

// The bounds of the elements of a value of a specialised graph, whatever the inputs hold.
struct Range {
  double least = 0;
  double most = 0;
};
// Returns the range; nullopt where that is not seen at once.
std::optional<Range> RangeOf(const Graph& graph, ValueId value);

}  // namespace reprise::pack
