// Plan: the cost of bucketing strategies on recorded lengths.
//
// For each number of buckets k: pad to the maximum, powers of two, multiples of 128, percentiles,
// and the solver's optimum. A batch of several rows is padded to its longest, then to the bucket.
//
// Threads: free functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/bucket/histogram.h"
#include "runtime/bucket/solver.h"

namespace reprise {

// Rows that are padded together: the longest of them, how many they are, and how many of their
// elements are real.
struct PlannedLengths {
  std::vector<WeightedSize> longest;  // lengths of replays, weight in rows; ascending
  std::vector<WeightedSize> replays;  // the same, each replay counted once
  double rows = 0;
  double valid_elements = 0;
  int64_t rows_at_once = 1;

  int64_t largest() const { return longest.empty() ? 0 : longest.back().size; }
  size_t distinct() const { return longest.size(); }
};

// Returns lengths in the order in which they come, `batch` of them padded together to the longest;
// the last batch may be smaller. The sizes must be at least 1 and `batch` too.
PlannedLengths PlanLengths(absl::Span<const int64_t> lengths, int64_t batch);
// Returns lengths whose order is not known: each alone.
PlannedLengths PlanCounts(absl::Span<const WeightedSize> lengths);

enum class Strategy { kMaximum, kPowersOfTwo, kLinear, kPercentile, kSolver };
inline constexpr int kNumStrategies = 5;
absl::string_view StrategyName(Strategy strategy);  // Returns "pad to maximum", "solver", ...

struct Judgement {
  std::vector<int64_t> boundaries;
  double padded = 0;         // computed elements that no client sent
  double waste = 0;          // their share of all computed elements, in [0, 1]
  double time = 0;           // measured in units of the cost
  double time_ratio = 1;     // time relative to replays at the exact longest length
  int64_t captures = 0;      // buckets that some length falls into, and exact lengths beyond the
                             // last
  double held_elements = 0;  // rows times length of all recipes, with which memory grows
  double beyond = 0;         // share of rows longer than the last bucket
};

// Judges the boundaries. `cost` is of one row at a length.
Judgement Judge(const PlannedLengths& lengths, absl::Span<const int64_t> boundaries,
                const BoundaryCost& cost);

struct PlanTable {
  int most = 0;
  // [k - 1][strategy]. Strategies that need more than k buckets keep their k largest.
  std::vector<std::vector<Judgement>> rows;
  const Judgement& at(int k, Strategy strategy) const {
    return rows[k - 1][static_cast<int>(strategy)];
  }
};
PlanTable MakePlan(const PlannedLengths& lengths, int most, const BoundaryCost& cost);

}  // namespace reprise
