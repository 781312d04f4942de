// FollowNumbers: what becomes of numbers that a rule alone cannot judge, since it takes two of
// them, or a certain reader, to make them harmless.
//
//   shifts      off by one number for a whole line at another size: a softmax does not see it
//   own places  the places of a batch's rows: what picks rows by them picks each for itself
//
// Threads: pure.
#pragma once

#include <vector>

#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

// The integers that a column of a table of places (its last dim) holds for the rows along `dim`.
enum class ColumnPlaces {
  kOwn,     // each row its own place
  kShared,  // all rows the same
  kOther,
};
ColumnPlaces PlacesOfColumn(const Tensor& places, int64_t dim, int64_t column);

// After the rule of `context`'s node has set what it knows of the results. `flows`: by value of
// `graph`, the one that the context was made with.
void FollowNumbers(const Graph& graph, AxisContext& context, std::vector<AxisFlowValue>& flows);

}  // namespace reprise
