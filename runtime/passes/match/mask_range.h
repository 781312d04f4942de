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
  // None of them is in between: a score keeps its digits when it is added, or has none left. Else
  // the attention of a query that sees no key depends on the last digits of its scores.
  bool clear = true;

  static constexpr double kHides = -1e30;     // and all below
  static constexpr double kKeepsAll = -1000;  // and all above
  static bool IsClear(double number) { return number <= kHides || number >= kKeepsAll; }
};
// nullopt where that is not seen at once.
std::optional<Range> RangeOf(const Graph& graph, ValueId value);

}  // namespace reprise::pack
