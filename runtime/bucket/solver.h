// The solver: which boundaries make the padding of the seen sizes cost least.
//
// A size is padded to the smallest boundary that holds it. Numbers only: sizes may be lengths,
// rows, or the tokens of a packed batch; a cost is any sum of the caller's (nanoseconds, elements).
//
//   Boundaries best = SolveBoundaries(seen, 8, [](int64_t size) { return double(size); });
//
// Threads: free functions of their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "runtime/bucket/histogram.h"

namespace reprise {

// Returns the cost of one observation that is padded to `boundary`.
using BoundaryCost = std::function<double(int64_t boundary)>;
// The cost of sizes that no boundary holds.
inline constexpr double kInfiniteCost = std::numeric_limits<double>::infinity();

struct Boundaries {
  std::vector<int64_t> sizes;  // ascending; the last one is the largest size seen
  double cost = 0;             // everything seen, and the boundaries themselves
};

// Returns the cheapest set of at most k boundaries, for each k of 1..`most`: an exact dynamic
// program over the sizes seen, O(most * n log n) for any `cost` (transitions are lines; the hull of
// them is searched). `price` (optional) is the fixed cost of a boundary: its capture, its memory.
// `seen` ascending by size, weights positive; empty: empty sets.
std::vector<Boundaries> SolveEach(absl::Span<const WeightedSize> seen, int most,
                                  const BoundaryCost& cost, const BoundaryCost& price = {});

// Returns the last of SolveEach.
Boundaries SolveBoundaries(absl::Span<const WeightedSize> seen, int most, const BoundaryCost& cost,
                           const BoundaryCost& price = {});

// Returns the cost of `seen` with these boundaries (ascending). A size above all of them costs its
// own size: it runs exact.
double CostOf(absl::Span<const WeightedSize> seen, absl::Span<const int64_t> boundaries,
              const BoundaryCost& cost);

}  // namespace reprise
