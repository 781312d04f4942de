#include "runtime/bucket/solver.h"

#include <algorithm>

namespace reprise {
namespace {

// The lower envelope of lines that are added with ever smaller slopes.
class LowerHull {
 public:
  struct Line {
    double slope, offset;
    int from;
    double At(double x) const { return slope * x + offset; }
  };

  void Add(Line line) {
    if (!lines_.empty() && lines_.back().slope == line.slope) {
      if (lines_.back().offset <= line.offset) return;
      lines_.pop_back();
    }
    while (lines_.size() >= 2 && Hides(lines_[lines_.size() - 2], lines_.back(), line)) {
      lines_.pop_back();
    }
    lines_.push_back(line);
  }

  bool empty() const { return lines_.empty(); }

  // Returns the lowest line at x: along the hull its value first falls, then grows.
  const Line& LowestAt(double x) const {
    size_t low = 0, high = lines_.size() - 1;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (lines_[middle].At(x) <= lines_[middle + 1].At(x)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return lines_[low];
  }

 private:
  // Returns whether `middle` is no lower than `before` and `after` where they meet.
  static bool Hides(const Line& before, const Line& middle, const Line& after) {
    return (after.offset - before.offset) * (before.slope - middle.slope) <=
           (middle.offset - before.offset) * (before.slope - after.slope);
  }

  std::vector<Line> lines_;
};

}  // namespace

std::vector<Boundaries> SolveEach(absl::Span<const WeightedSize> seen, int most,
                                  const BoundaryCost& cost, const BoundaryCost& price) {
  const int n = static_cast<int>(seen.size());
  std::vector<double> below(n + 1, 0);  // weight of the first i sizes
  std::vector<double> costs(n), prices(n, 0);
  for (int i = 0; i < n; ++i) {
    below[i + 1] = below[i] + seen[i].weight;
    costs[i] = cost(seen[i].size);
    if (price) prices[i] = price(seen[i].size);
  }
  // best[i]: the first i sizes with at most k boundaries, the last of them at size i - 1. With one
  // boundary more: best'[j] = min over i of best[i] + (below[j] - below[i]) * cost[j - 1], where
  // for each j the candidates i are lines in cost[j - 1].
  std::vector<double> best(n + 1, kInfiniteCost);
  best[0] = 0;
  std::vector<std::vector<int>> from;  // that i, for k and j; -1: k boundaries are no better
  std::vector<Boundaries> result;
  for (int k = 1; k <= most; ++k) {
    std::vector<double> next = best;
    std::vector<int>& chosen = from.emplace_back(n + 1, -1);
    LowerHull hull;
    for (int j = 1; j <= n; ++j) {
      if (best[j - 1] < kInfiniteCost) hull.Add({-below[j - 1], best[j - 1], j - 1});
      if (hull.empty()) continue;
      const LowerHull::Line& line = hull.LowestAt(costs[j - 1]);
      const double total = line.At(costs[j - 1]) + below[j] * costs[j - 1] + prices[j - 1];
      if (total < next[j]) {
        next[j] = total;
        chosen[j] = line.from;
      }
    }
    best = std::move(next);
    Boundaries& solved = result.emplace_back();
    solved.cost = n == 0 ? 0 : best[n];
    for (int j = n, level = k - 1; j > 0; --level) {
      const int i = from[level][j];
      if (i < 0) continue;
      solved.sizes.push_back(seen[j - 1].size);
      j = i;
    }
    std::reverse(solved.sizes.begin(), solved.sizes.end());
  }
  return result;
}

Boundaries SolveBoundaries(absl::Span<const WeightedSize> seen, int most, const BoundaryCost& cost,
                           const BoundaryCost& price) {
  std::vector<Boundaries> each = SolveEach(seen, std::max(most, 1), cost, price);
  return std::move(each.back());
}

double CostOf(absl::Span<const WeightedSize> seen, absl::Span<const int64_t> boundaries,
              const BoundaryCost& cost) {
  double total = 0;
  size_t at = 0;
  double here = boundaries.empty() ? 0 : cost(boundaries[0]);
  for (const WeightedSize& one : seen) {
    while (at < boundaries.size() && boundaries[at] < one.size) {
      if (++at < boundaries.size()) here = cost(boundaries[at]);
    }
    total += one.weight * (at < boundaries.size() ? here : cost(one.size));
  }
  return total;
}

}  // namespace reprise
