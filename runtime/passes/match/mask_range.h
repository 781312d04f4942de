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
  // None of them is in between: a score keeps its digits beside it, or has none left. Else what a
  // query that sees no key attends to depends on the last digits of its scores.
  bool clear = true;

  static constexpr double kHides = -1e30;     // and what is below
  static constexpr double kKeepsAll = -1000;  // and what is above
  static bool IsClear(double number) { return number <= kHides || number >= kKeepsAll; }
};
// nullopt where that is not seen at once.
std::optional<Range> RangeOf(const Graph& graph, ValueId value);

}  // namespace reprise::pack
