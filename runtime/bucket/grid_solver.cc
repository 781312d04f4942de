#include "runtime/bucket/grid_solver.h"

#include <algorithm>

#include "runtime/bucket/boundary_choice.h"
#include "runtime/bucket/solver.h"

namespace reprise {
namespace {

using Sets = std::vector<std::vector<int64_t>>;  // boundaries by axis

// Combinations of boundaries of the other axes that are tried one by one, for each of which the
// last axis is solved exactly.
constexpr double kMostTries = 4096;
// Steps of improving axes in turn: each makes the cost fall, so few are needed.
constexpr int kMostRounds = 32;

class GridSolver {
 public:
  GridSolver(absl::Span<const WeightedSizes> seen, const BindingCost& cost,
             const GridOptions& options)
      : seen_(seen), cost_(cost), options_(options) {
    axes_ = seen.empty() ? options.most.size() : seen[0].sizes.size();
    for (size_t axis = 0; axis < axes_; ++axis) {
      std::vector<int64_t>& sizes = candidates_.emplace_back();
      for (const WeightedSize& one : AlongAxis(seen, axis)) sizes.push_back(one.size);
    }
  }

  double SampleCost(const std::vector<int64_t>& sizes, const Sets& sets) const {
    std::vector<int64_t> binding(axes_);
    for (size_t a = 0; a < axes_; ++a) binding[a] = Holding(sets[a], sizes[a]);
    if (options_.batch_axis < 0 || options_.max_product <= 0) return cost_(sizes, binding);
    const int b = options_.batch_axis;
    const int64_t most = MostRows(binding, sets[b]);
    if (sizes[b] <= most) return cost_(sizes, binding);
    // Several replays, as large as the limit allows, and one of the rest.
    std::vector<int64_t> part = sizes;
    double total = 0;
    binding[b] = most;
    part[b] = most;
    const int64_t full = sizes[b] / most;
    total = static_cast<double>(full) * cost_(part, binding);
    if (const int64_t left = sizes[b] % most; left > 0) {
      part[b] = left;
      binding[b] = Holding(sets[b], left);
      total += cost_(part, binding);
    }
    return total;
  }

  double Cost(const Sets& sets) const {
    double total = Buckets(sets) * options_.price;
    for (const WeightedSizes& one : seen_) total += one.weight * SampleCost(one.sizes, sets);
    return total;
  }

  Grid Solve() {
    std::vector<size_t> open;  // axes to be solved, the one with most sizes last
    for (size_t a = 0; a < axes_; ++a) {
      if (a >= options_.fixed.size() || options_.fixed[a].empty()) open.push_back(a);
    }
    // Splitting a batch depends on all of its boundaries: the batch axis is never the last axis,
    // which is solved segment by segment.
    std::stable_sort(open.begin(), open.end(), [&](size_t x, size_t y) {
      const bool x_batch = IsSplit(x), y_batch = IsSplit(y);
      if (x_batch != y_batch) return x_batch;
      return candidates_[x].size() < candidates_[y].size();
    });
    Sets sets(axes_);
    for (size_t a = 0; a < axes_; ++a) {
      const bool is_fixed = a < options_.fixed.size() && !options_.fixed[a].empty();
      sets[a] = is_fixed ? options_.fixed[a] : std::vector<int64_t>{candidates_[a].back()};
    }
    best_ = {sets, Cost(sets)};
    if (open.empty()) return best_;
    double tries = 1;
    for (size_t i = 0; i + 1 < open.size() || (i < open.size() && IsSplit(open[i])); ++i) {
      tries *= Subsets(open[i]);
    }
    if (tries <= kMostTries) {
      TryAll(open, 0, sets);
    } else {
      ImproveInTurn(open, sets);
    }
    return best_;
  }

 private:
  bool IsSplit(size_t axis) const {
    return static_cast<int>(axis) == options_.batch_axis && options_.max_product > 0;
  }

  static double Buckets(const Sets& sets) {
    double count = 1;
    for (const auto& set : sets) count *= static_cast<double>(set.size());
    return count;
  }

  // Returns the most rows that go with the other sizes of `binding`.
  int64_t MostRows(const std::vector<int64_t>& binding, const std::vector<int64_t>& rows) const {
    double others = 1;
    for (size_t a = 0; a < axes_; ++a) {
      if (static_cast<int>(a) != options_.batch_axis) others *= static_cast<double>(binding[a]);
    }
    int64_t most = rows.front();
    for (int64_t one : rows) {
      if (static_cast<double>(one) * others <= static_cast<double>(options_.max_product)) {
        most = std::max(most, one);
      }
    }
    return most;
  }

  // Returns the number of sets of at most `most` candidates that hold the largest one.
  double Subsets(size_t axis) const {
    const int n = static_cast<int>(candidates_[axis].size()) - 1;
    double sum = 0, ways = 1;
    for (int k = 0; k < std::min(options_.most[axis], n + 1); ++k) {
      sum += ways;
      ways = ways * (n - k) / (k + 1);
    }
    return sum;
  }

  // Returns how many boundaries the axis may have, given the sets of the others.
  int Allowed(size_t axis, const Sets& sets) const {
    const int most = options_.most[axis];
    if (options_.most_buckets <= 0) return most;
    int64_t others = 1;
    for (size_t a = 0; a < axes_; ++a) {
      if (a != axis) others *= static_cast<int64_t>(sets[a].size());
    }
    return static_cast<int>(std::min<int64_t>(most, options_.most_buckets / others));
  }

  void Keep(const Sets& sets, double cost) {
    if (cost < best_.cost) best_ = {sets, cost};
  }

  void TryAll(const std::vector<size_t>& open, size_t at, Sets& sets) {
    const size_t axis = open[at];
    if (at + 1 == open.size() && !IsSplit(axis)) {
      const std::vector<int64_t> before = sets[axis];
      if (Allowed(axis, sets) >= 1) {
        SolveAxis(axis, sets);
        Keep(sets, Cost(sets));
      }
      sets[axis] = before;
      return;
    }
    const std::vector<int64_t> before = sets[axis];
    std::vector<int64_t> chosen;
    TrySubsets(open, at, 0, chosen, sets);
    sets[axis] = before;
  }

  // Tries every set of candidates from `next` on, with the largest always in it.
  void TrySubsets(const std::vector<size_t>& open, size_t at, size_t next,
                  std::vector<int64_t>& chosen, Sets& sets) {
    const size_t axis = open[at];
    const std::vector<int64_t>& all = candidates_[axis];
    if (next + 1 == all.size()) {
      sets[axis] = chosen;
      sets[axis].push_back(all.back());
      if (options_.most_buckets > 0 &&
          Buckets(sets) / static_cast<double>(OpenBuckets(open, at, sets)) >
              static_cast<double>(options_.most_buckets)) {
        return;
      }
      if (at + 1 == open.size()) {
        Keep(sets, Cost(sets));
      } else {
        TryAll(open, at + 1, sets);
      }
      return;
    }
    TrySubsets(open, at, next + 1, chosen, sets);
    if (static_cast<int>(chosen.size()) + 1 < options_.most[axis]) {
      chosen.push_back(all[next]);
      TrySubsets(open, at, next + 1, chosen, sets);
      chosen.pop_back();
    }
  }

  // Returns the combinations of the axes after `at`, whose sets are not chosen yet and can shrink
  // to one.
  static double OpenBuckets(const std::vector<size_t>& open, size_t at, const Sets& sets) {
    double count = 1;
    for (size_t i = at + 1; i < open.size(); ++i) {
      count *= static_cast<double>(sets[open[i]].size());
    }
    return count;
  }

  // Finds the best boundaries of one axis that is not split, given the boundaries of the others:
  // cost adds up over segments of its sizes.
  void SolveAxis(size_t axis, Sets& sets) const {
    const std::vector<int64_t>& values = candidates_[axis];
    const int n = static_cast<int>(values.size());
    const int most = std::min(Allowed(axis, sets), n);
    double others = 1;
    for (size_t a = 0; a < axes_; ++a) {
      if (a != axis) others *= static_cast<double>(sets[a].size());
    }
    const double price = options_.price * others;
    std::vector<int> value_of(seen_.size());
    for (size_t s = 0; s < seen_.size(); ++s) {
      value_of[s] = static_cast<int>(
          std::lower_bound(values.begin(), values.end(), seen_[s].sizes[axis]) - values.begin());
    }
    // below[j][i]: the cost of the observations of the first i values at boundary j.
    std::vector<std::vector<double>> below(n);
    Sets one = sets;
    for (int j = 0; j < n; ++j) {
      one[axis] = {values[j]};
      below[j].assign(j + 2, 0);
      for (size_t s = 0; s < seen_.size(); ++s) {
        if (value_of[s] <= j) {
          below[j][value_of[s] + 1] += seen_[s].weight * SampleCost(seen_[s].sizes, one);
        }
      }
      for (int i = 0; i <= j; ++i) below[j][i + 1] += below[j][i];
    }
    std::vector<double> best(n + 1, kInfiniteCost);
    best[0] = 0;
    std::vector<std::vector<int>> from;
    for (int k = 1; k <= most; ++k) {
      std::vector<double> next = best;
      std::vector<int>& chosen = from.emplace_back(n + 1, -1);
      for (int j = 1; j <= n; ++j) {
        for (int i = 0; i < j; ++i) {
          if (best[i] == kInfiniteCost) continue;
          const double total = best[i] + below[j - 1][j] - below[j - 1][i] + price;
          if (total < next[j]) {
            next[j] = total;
            chosen[j] = i;
          }
        }
      }
      best = std::move(next);
    }
    std::vector<int64_t> solved;
    for (int j = n, level = most - 1; j > 0; --level) {
      const int i = from[level][j];
      if (i < 0) continue;
      solved.push_back(values[j - 1]);
      j = i;
    }
    std::reverse(solved.begin(), solved.end());
    sets[axis] = std::move(solved);
  }

  // Solves the split axis: boundaries are added and taken away one by one while that pays.
  void ImproveSplitAxis(size_t axis, Sets& sets) const {
    double cost = Cost(sets);
    for (bool better = true; better;) {
      better = false;
      std::vector<int64_t> best_set;
      for (int64_t value : candidates_[axis]) {
        Sets tried = sets;
        std::vector<int64_t>& set = tried[axis];
        const auto it = std::lower_bound(set.begin(), set.end(), value);
        if (it != set.end() && *it == value) {
          if (value == candidates_[axis].back()) continue;
          set.erase(it);
        } else {
          if (static_cast<int>(set.size()) >= Allowed(axis, sets)) continue;
          set.insert(it, value);
        }
        const double now = Cost(tried);
        if (now < cost) {
          cost = now;
          best_set = set;
          better = true;
        }
      }
      if (better) sets[axis] = best_set;
    }
  }

  void ImproveInTurn(const std::vector<size_t>& open, const Sets& start) {
    // Solve with each axis first: the first one has all the freedom that the limit on buckets
    // leaves.
    for (size_t first = 0; first < open.size(); ++first) {
      Sets sets = start;
      double cost = Cost(sets);
      for (int round = 0; round < kMostRounds; ++round) {
        for (size_t i = 0; i < open.size(); ++i) {
          const size_t axis = open[(first + i) % open.size()];
          if (Allowed(axis, sets) < 1) continue;
          if (IsSplit(axis)) {
            ImproveSplitAxis(axis, sets);
          } else {
            SolveAxis(axis, sets);
          }
        }
        const double now = Cost(sets);
        if (!(now < cost)) break;
        cost = now;
        Keep(sets, now);
      }
    }
  }

  const absl::Span<const WeightedSizes> seen_;
  const BindingCost& cost_;
  const GridOptions& options_;
  size_t axes_ = 0;
  Sets candidates_;
  Grid best_;
};

}  // namespace

Grid SolveGrid(absl::Span<const WeightedSizes> seen, const BindingCost& cost,
               const GridOptions& options) {
  return GridSolver(seen, cost, options).Solve();
}

double GridCost(absl::Span<const WeightedSizes> seen,
                absl::Span<const std::vector<int64_t>> boundaries, const BindingCost& cost,
                const GridOptions& options) {
  return GridSolver(seen, cost, options).Cost({boundaries.begin(), boundaries.end()});
}

}  // namespace reprise
