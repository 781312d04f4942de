// Which boundaries the requests of one model should have, on any number of axes: the least time
// among the boundaries that pad hardly more than need be. Also the cost of boundaries on requests:
// elements, padding, time.
//
// A short-lived object: it holds references to its arguments. Numbers only. Threads: none of its
// own; the caller guards the referenced objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/bucket/boundaries.h"
#include "runtime/bucket/cost_model.h"
#include "runtime/bucket/histogram.h"
#include "runtime/bucket/size_measure.h"
#include "runtime/bucket/solver.h"

namespace reprise {

// A set of buckets by axis, each ascending; empty: the axis has none.
using BoundarySets = std::vector<std::vector<int64_t>>;

struct AdvisorAxis {
  std::string label;
  BoundaryRule rule;           // one that does not learn leaves the axis as it is
  std::vector<int64_t> start;  // buckets in force at first, ascending
  int64_t step = 1;            // all buckets are multiples of it
};

// Returns whether the model takes a bucket of this size along an axis (index). Null: the largest
// bucket of each axis stays as it is.
using TakesSize = std::function<bool(size_t axis, int64_t size)>;

// Returns the smallest boundary that holds `size`; `size` itself where none does: it runs exact.
int64_t Holding(absl::Span<const int64_t> boundaries, int64_t size);
// Rows of requests, by their sizes, and how many elements they are.
struct SeenRows {
  absl::Span<const WeightedSizes> seen;  // weights are rows
  const SizeMeasure& measure;            // elements of a row
};

// Returns the elements of a row of `sizes` in its bucket.
int64_t PaddedElements(absl::Span<const int64_t> sizes, const BoundarySets& sets,
                       const SizeMeasure& measure);
// Returns the share of the computed elements that is padding.
double PaddingShare(const SeenRows& rows, const BoundarySets& sets);

// How much cheaper one set is than another on some requests.
struct BoundaryGain {
  double share = 0;  // its part of the time under the first sets
  double error = 0;  // its standard error
};
BoundaryGain GainOf(const SeenRows& rows, const BoundarySets& before, const BoundarySets& after,
                    const ReplayCost& cost);
// Returns the mean time of a row.
double MeanRowNs(const SeenRows& rows, const BoundarySets& sets, const ReplayCost& cost);

class BoundaryChoice {
 public:
  // All outlive it. `in_force` has a set for each axis.
  BoundaryChoice(const std::vector<AdvisorAxis>& axes, const TakesSize& takes,
                 const ReplayCost& cost, const BoundarySets& in_force, const SizeMeasure& measure)
      : axes_(axes), takes_(takes), cost_(cost), in_force_(in_force), measure_(measure) {}

  // Returns the sets that should replace the ones in force. Axes that do not learn keep theirs.
  BoundarySets Solve(absl::Span<const WeightedSizes> seen) const;

  // Returns whether requests on some axis that learns are larger than its largest bucket so often
  // that it should grow.
  bool SomeShouldGrow(absl::Span<const WeightedSizes> seen) const;

 private:
  // Returns the largest bucket that an axis should have.
  int64_t Ceiling(absl::Span<const WeightedSize> seen, size_t axis) const;
  BoundarySets SolveFor(absl::Span<const WeightedSizes> seen, const BoundaryCost& row_ns) const;
  // Solves several axes: the ones in `automatic`, given the others of `sets`.
  void SolveTogether(absl::Span<const WeightedSizes> seen, absl::Span<const size_t> automatic,
                     const BoundaryCost& row_ns, BoundarySets& sets) const;

  const std::vector<AdvisorAxis>& axes_;
  const TakesSize& takes_;
  const ReplayCost& cost_;
  const BoundarySets& in_force_;
  const SizeMeasure& measure_;
};

}  // namespace reprise
