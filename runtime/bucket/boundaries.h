// Boundaries by rule: a short text instead of a list.
//
// The text of a rule, as in config.pbtxt and on the command line:
//
//   16,32,64               these sizes
//   linear:16,32,512       from 16 in steps of 32, the last one 512
//   exponential:16,2,512   from 16, each twice the one before, the last one 512
//   percentile:8           8 equal shares of the traffic, the last one its maximum
//   auto, auto:8           the at most 8 sizes that cost least time, found from the traffic
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/bucket/histogram.h"

namespace reprise {

// No size is larger: sizes multiply, and the product must stay far from overflow.
inline constexpr int64_t kLargestSize = int64_t{1} << 24;
// More boundaries than this along one axis bring no gain.
inline constexpr int64_t kMostBoundaries = 256;
// The most sizes of `auto` without a number.
inline constexpr int kAutoBoundaries = 8;

struct BoundaryRule {
  enum class Kind { kExplicit, kLinear, kExponential, kPercentile, kAuto };
  Kind kind = Kind::kAuto;
  std::vector<int64_t> sizes;  // sizes that the rule itself gives; empty where traffic decides
  int most = kAutoBoundaries;  // sizes of a rule that traffic decides

  bool learns() const { return kind == Kind::kPercentile || kind == Kind::kAuto; }
};

// Returns INVALID_ARGUMENT naming the fault of `text`.
absl::StatusOr<BoundaryRule> ParseBoundaryRule(absl::string_view text);

// Returns `first`, `first + step`, ... and `last`. INVALID_ARGUMENT for sizes out of order, a step
// below 1, or more than kMostBoundaries of them.
absl::StatusOr<std::vector<int64_t>> LinearBoundaries(int64_t first, int64_t step, int64_t last);

// Returns `first`, `first * factor` rounded up, ... and `last`. INVALID_ARGUMENT as above, and for
// a factor of 1 or less.
absl::StatusOr<std::vector<int64_t>> ExponentialBoundaries(int64_t first, double factor,
                                                           int64_t last);

// Returns the sizes at k equal steps of the cumulative share, each without interpolation the lower
// of two neighbours, as numpy.percentile(sizes, linspace(0, 100, k + 1)[1:], method="lower") has
// them; equal ones once. The last is the maximum. `seen` holds whole counts, ascending by size.
std::vector<int64_t> PercentileBoundaries(absl::Span<const WeightedSize> seen, int k);

// Returns powers of two from the one that holds the smallest size seen to the one that holds the
// largest.
std::vector<int64_t> PowersOfTwo(absl::Span<const WeightedSize> seen);

}  // namespace reprise
