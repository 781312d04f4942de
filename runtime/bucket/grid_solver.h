// The solver for several axes at once: boundaries of each axis such that every combination of them
// is a bucket.
//
// Observations are sizes of several axes together: rows and length of a replay, height and width of
// an image. One axis may be the batch, whose sizes can be split: where the limit on the product
// allows fewer rows at a length, a batch of more runs as several replays, as the scheduler does it.
//
// Threads: free functions of their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/bucket/histogram.h"

namespace reprise {

// Returns the cost of a replay of `sizes` in the bucket `binding` (both by axis). Must not fall
// when a size of the binding grows.
using BindingCost =
    std::function<double(absl::Span<const int64_t> sizes, absl::Span<const int64_t> binding)>;

struct GridOptions {
  std::vector<int> most;     // boundaries of each axis
  int64_t most_buckets = 0;  // combinations, those over the limit on the product included; 0: any
  int batch_axis = -1;       // index, -1: none
  int64_t max_product = 0;   // limits a bucket's sizes unless its batch is the smallest; 0: none
  // Fixed boundaries of an axis, ascending; empty: to be found.
  std::vector<std::vector<int64_t>> fixed;
  double price = 0;  // added for each bucket, in units of the cost
};

struct Grid {
  std::vector<std::vector<int64_t>> boundaries;  // one list an axis, ascending
  double cost = 0;
};

// Returns the cheapest grid. Exact for one axis and for two, where the second has few enough
// distinct sizes to try every set of boundaries (the usual case: rows of a batch); otherwise axes
// are improved in turn from several starts until none gets better. `seen`: not empty, sizes at
// least 1.
Grid SolveGrid(absl::Span<const WeightedSizes> seen, const BindingCost& cost,
               const GridOptions& options);

// Returns the cost of `seen` with these boundaries. Sizes above all boundaries of an axis run
// exact.
double GridCost(absl::Span<const WeightedSizes> seen,
                absl::Span<const std::vector<int64_t>> boundaries, const BindingCost& cost,
                const GridOptions& options);

}  // namespace reprise
