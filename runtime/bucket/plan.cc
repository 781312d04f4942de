#include "runtime/bucket/plan.h"

#include <algorithm>
#include <map>

#include "absl/strings/string_view.h"
#include "runtime/bucket/boundaries.h"

namespace reprise {
namespace {

constexpr int64_t kLinearStep = 128;

std::vector<WeightedSize> ToSizes(const std::map<int64_t, double>& weights) {
  std::vector<WeightedSize> sizes;
  for (const auto& [size, weight] : weights) sizes.push_back({size, weight});
  return sizes;
}

std::vector<int64_t> Last(std::vector<int64_t> sizes, int k) {
  if (sizes.size() > static_cast<size_t>(k)) sizes.erase(sizes.begin(), sizes.end() - k);
  return sizes;
}

std::vector<int64_t> Multiples(const PlannedLengths& lengths) {
  std::vector<int64_t> sizes;
  int64_t size = (lengths.longest.front().size + kLinearStep - 1) / kLinearStep * kLinearStep;
  for (; size < lengths.largest() + kLinearStep; size += kLinearStep) sizes.push_back(size);
  return sizes;
}

}  // namespace

absl::string_view StrategyName(Strategy strategy) {
  switch (strategy) {
    case Strategy::kMaximum:
      return "pad to maximum";
    case Strategy::kPowersOfTwo:
      return "powers of two";
    case Strategy::kLinear:
      return "linear 128";
    case Strategy::kPercentile:
      return "percentile";
    case Strategy::kSolver:
      break;
  }
  return "solver";
}

PlannedLengths PlanLengths(absl::Span<const int64_t> lengths, int64_t batch) {
  PlannedLengths planned;
  planned.rows_at_once = batch;
  std::map<int64_t, double> rows, replays;
  for (size_t first = 0; first < lengths.size(); first += batch) {
    const auto group = lengths.subspan(first, batch);
    const int64_t longest = *std::max_element(group.begin(), group.end());
    for (int64_t length : group) planned.valid_elements += static_cast<double>(length);
    rows[longest] += static_cast<double>(group.size());
    replays[longest] += 1;
  }
  planned.rows = static_cast<double>(lengths.size());
  planned.longest = ToSizes(rows);
  planned.replays = ToSizes(replays);
  return planned;
}

PlannedLengths PlanCounts(absl::Span<const WeightedSize> lengths) {
  PlannedLengths planned;
  std::map<int64_t, double> rows;
  for (const WeightedSize& one : lengths) {
    rows[one.size] += one.weight;
    planned.rows += one.weight;
    planned.valid_elements += one.weight * static_cast<double>(one.size);
  }
  planned.longest = ToSizes(rows);
  planned.replays = planned.longest;
  return planned;
}

Judgement Judge(const PlannedLengths& lengths, absl::Span<const int64_t> boundaries,
                const BoundaryCost& cost) {
  Judgement result;
  result.boundaries.assign(boundaries.begin(), boundaries.end());
  double computed = 0, exact_time = 0, beyond = 0;
  int64_t last = 0;  // the next smaller size's bucket
  for (const WeightedSize& one : lengths.longest) {
    const auto it = std::lower_bound(boundaries.begin(), boundaries.end(), one.size);
    const int64_t bucket = it == boundaries.end() ? one.size : *it;
    if (it == boundaries.end()) beyond += one.weight;
    computed += one.weight * static_cast<double>(bucket);
    result.time += one.weight * cost(bucket);
    exact_time += one.weight * cost(one.size);
    if (bucket == last) continue;
    last = bucket;
    ++result.captures;
    result.held_elements += static_cast<double>(bucket * lengths.rows_at_once);
  }
  result.padded = computed - lengths.valid_elements;
  result.waste = computed > 0 ? result.padded / computed : 0;
  result.time_ratio = exact_time > 0 ? result.time / exact_time : 1;
  result.beyond = lengths.rows > 0 ? beyond / lengths.rows : 0;
  return result;
}

PlanTable MakePlan(const PlannedLengths& lengths, int most, const BoundaryCost& cost) {
  PlanTable table;
  if (lengths.longest.empty()) return table;
  table.most = most;
  const std::vector<Boundaries> solved = SolveEach(lengths.longest, most, cost);
  for (int k = 1; k <= most; ++k) {
    std::vector<Judgement>& row = table.rows.emplace_back();
    row.push_back(Judge(lengths, std::vector<int64_t>{lengths.largest()}, cost));
    row.push_back(Judge(lengths, Last(PowersOfTwo(lengths.longest), k), cost));
    row.push_back(Judge(lengths, Last(Multiples(lengths), k), cost));
    // As published: percentiles of the replays, each counted once.
    row.push_back(Judge(lengths, PercentileBoundaries(lengths.replays, k), cost));
    row.push_back(Judge(lengths, solved[k - 1].sizes, cost));
  }
  return table;
}

}  // namespace reprise
