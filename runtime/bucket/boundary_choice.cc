#include "runtime/bucket/boundary_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "runtime/bucket/grid_solver.h"

namespace reprise {
namespace {

// The weight of sizes that the solver must hold in addition to the seen ones, though they cost
// nothing.
constexpr double kUnseenWeight = 1e-6;
// The weight of a hypothetical next request that is longer than all before: boundaries are solved
// for it as well.
constexpr double kNextWeight = 1;
// The cost of a row, for the choice of boundaries, is this share in proportion to its size and the
// rest as measured: the first under which the boundaries found pad hardly more than the boundaries
// of least padding. Half at least: next to other work the times of short replays are mostly noise.
constexpr double kElementShares[] = {0.5, 0.75, 1};
constexpr double kMostElements = 1.005;
// The largest bucket grows when more than this share of the requests is larger; the new one holds
// all but this share.
constexpr double kMostBeyond = 0.01;
// Several axes at once are solved over at most about this many sizes of each.
constexpr size_t kMostGridSizes = 96;
// At most this many axes are solved together; more are solved one by one. That takes time by their
// number, not by its square, and the time of a replay is seldom the product of more sizes.
constexpr size_t kMostTogether = 3;

// Returns the computed elements, padding included.
double ComputedElements(const SeenRows& rows, const BoundarySets& sets) {
  double computed = 0;
  for (const WeightedSizes& one : rows.seen) {
    computed += one.weight * static_cast<double>(PaddedElements(one.sizes, sets, rows.measure));
  }
  return computed;
}

// The cost of a row of some size, for the choice of boundaries.
class RowCost {
 public:
  explicit RowCost(const ReplayCost& cost, double element_share = kElementShares[0])
      : cost_(cost), element_share_(element_share) {
    double ns = 0, elements = 0;
    for (const ReplayCost::Point& point : cost.Curve()) {
      ns += point.replays * point.row_ns;
      elements += point.replays * static_cast<double>(point.row_size);
    }
    if (elements > 0) ns_per_element_ = ns / elements;
  }
  double operator()(int64_t size) const {
    const double measured = cost_.RowNs(size);
    // Before anything was measured, the cost is the number of elements.
    if (ns_per_element_ <= 0) return measured;
    return element_share_ * ns_per_element_ * static_cast<double>(size) +
           (1 - element_share_) * measured;
  }

 private:
  const ReplayCost& cost_;
  const double element_share_;
  double ns_per_element_ = 0;
};

// Returns the boundaries of one axis. The last one is `ceiling`, which holds everything seen. It is
// one of the boundaries that the rule allows; or an extra one, where no request needs it yet: a
// smaller one of the boundaries in force at first holds all requests.
std::vector<int64_t> SolveLine(std::vector<WeightedSize> seen, const AdvisorAxis& axis,
                               int64_t ceiling, const BoundaryCost& cost) {
  if (seen.empty()) return {ceiling};
  const int64_t longest = seen.back().size;
  const int64_t guard = longest > axis.start.back() ? ceiling : Holding(axis.start, longest);
  // The next longer request falls into the guard, not into the ceiling.
  if (longest == guard) {
    seen.back().weight += kNextWeight;
  } else {
    seen.push_back({guard, kNextWeight});
  }
  std::vector<int64_t> sizes = SolveBoundaries(seen, axis.rule.most, cost).sizes;
  if (guard < ceiling) sizes.push_back(ceiling);
  return sizes;
}

// Returns the sizes rounded up so far that few enough of them differ along each axis.
std::vector<WeightedSizes> Coarse(absl::Span<const WeightedSizes> seen) {
  std::vector<WeightedSizes> coarse(seen.begin(), seen.end());
  for (size_t axis = 0; !coarse.empty() && axis < coarse[0].sizes.size(); ++axis) {
    for (int bits = 10; bits > 1 && AlongAxis(coarse, axis).size() > kMostGridSizes; --bits) {
      int64_t largest = 0;
      for (const WeightedSizes& one : seen) largest = std::max(largest, one.sizes[axis]);
      for (WeightedSizes& one : coarse) {
        int64_t& size = one.sizes[axis];
        const int shift = static_cast<int>(std::bit_width(static_cast<uint64_t>(size))) - bits;
        if (shift <= 0) continue;
        const int64_t step = int64_t{1} << shift;
        size = std::min(largest, (size + step - 1) / step * step);
      }
    }
  }
  SizeHistogram merged;
  for (const WeightedSizes& one : coarse) merged.Add(one.sizes, one.weight);
  return merged.Snapshot();
}

}  // namespace

int64_t Holding(absl::Span<const int64_t> boundaries, int64_t size) {
  const auto it = std::lower_bound(boundaries.begin(), boundaries.end(), size);
  return it == boundaries.end() ? size : *it;
}

int64_t PaddedElements(absl::Span<const int64_t> sizes, const BoundarySets& sets,
                       const SizeMeasure& measure) {
  absl::InlinedVector<int64_t, 4> padded;
  for (size_t i = 0; i < sizes.size(); ++i) padded.push_back(Holding(sets[i], sizes[i]));
  return measure.Elements(padded);
}

double PaddingShare(const SeenRows& rows, const BoundarySets& sets) {
  double valid = 0;
  for (const WeightedSizes& one : rows.seen) {
    valid += one.weight * static_cast<double>(rows.measure.Elements(one.sizes));
  }
  const double computed = ComputedElements(rows, sets);
  return computed > 0 ? 1 - valid / computed : 0;
}

BoundaryGain GainOf(const SeenRows& rows, const BoundarySets& before, const BoundarySets& after,
                    const ReplayCost& replays) {
  const RowCost row_ns(replays);
  const auto cost_of = [&](absl::Span<const int64_t> sizes, const BoundarySets& sets) {
    return row_ns(PaddedElements(sizes, sets, rows.measure));
  };
  double weight = 0, gain = 0, cost = 0, squares = 0;
  for (const WeightedSizes& one : rows.seen) {
    const double now = cost_of(one.sizes, before);
    const double saved = now - cost_of(one.sizes, after);
    weight += one.weight;
    cost += one.weight * now;
    gain += one.weight * saved;
    squares += one.weight * saved * saved;
  }
  if (cost <= 0) return {};
  const double mean = gain / weight;
  const double variance = std::max(0.0, squares / weight - mean * mean);
  return {.share = gain / cost, .error = std::sqrt(variance / weight) * weight / cost};
}

double MeanRowNs(const SeenRows& rows, const BoundarySets& sets, const ReplayCost& cost) {
  const RowCost row_ns(cost);
  double ns = 0, weight = 0;
  for (const WeightedSizes& one : rows.seen) {
    ns += one.weight * row_ns(PaddedElements(one.sizes, sets, rows.measure));
    weight += one.weight;
  }
  return weight > 0 ? ns / weight : 0;
}

int64_t BoundaryChoice::Ceiling(absl::Span<const WeightedSize> seen, size_t axis) const {
  const int64_t now = in_force_[axis].back();
  if (!takes_ || !axes_[axis].rule.learns()) return now;
  double total = 0, beyond = 0;
  for (const WeightedSize& one : seen) {
    total += one.weight;
    if (one.size > now) beyond += one.weight;
  }
  if (beyond <= kMostBeyond * total) return now;
  auto last = seen.rbegin();
  for (double left = kMostBeyond * total - last->weight; left > 0; left -= last->weight) ++last;
  for (auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(last->size)));
       size > now; size /= 2) {
    if (takes_(axis, size)) return size;
    if (size > last->size && last->size > size / 2 && takes_(axis, last->size)) {
      return last->size;
    }
  }
  return now;
}

bool BoundaryChoice::SomeShouldGrow(absl::Span<const WeightedSizes> seen) const {
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    if (in_force_[axis].empty()) continue;
    if (Ceiling(AlongAxis(seen, axis), axis) > in_force_[axis].back()) return true;
  }
  return false;
}

BoundarySets BoundaryChoice::Solve(absl::Span<const WeightedSizes> seen) const {
  const double least = ComputedElements({seen, measure_}, SolveFor(seen, RowCost(cost_, 1)));
  BoundarySets sets;
  for (const double share : kElementShares) {
    sets = SolveFor(seen, RowCost(cost_, share));
    if (ComputedElements({seen, measure_}, sets) <= least * kMostElements) break;
  }
  return sets;
}

BoundarySets BoundaryChoice::SolveFor(absl::Span<const WeightedSizes> seen,
                                      const BoundaryCost& row_ns) const {
  BoundarySets sets = in_force_;
  std::vector<size_t> automatic;
  for (size_t axis = 0; axis < sets.size(); ++axis) {
    const AdvisorAxis& own = axes_[axis];
    if (own.start.empty() || !own.rule.learns()) continue;
    const int64_t ceiling = Ceiling(AlongAxis(seen, axis), axis);
    sets[axis] = {ceiling};
    if (own.rule.kind == BoundaryRule::Kind::kAuto) automatic.push_back(axis);
  }
  // Requests that are larger still run exact.
  std::vector<WeightedSizes> within;
  for (const WeightedSizes& one : seen) {
    bool fits = true;
    for (size_t axis = 0; axis < sets.size(); ++axis) {
      fits = fits && (sets[axis].empty() || one.sizes[axis] <= sets[axis].back());
    }
    if (fits) within.push_back(one);
  }
  for (size_t axis = 0; axis < sets.size(); ++axis) {
    const AdvisorAxis& own = axes_[axis];
    if (own.start.empty() || own.rule.kind != BoundaryRule::Kind::kPercentile) continue;
    // The rule's boundaries, and one that holds the lengths that did not come yet.
    const int64_t ceiling = sets[axis].back();
    sets[axis] = PercentileBoundaries(AlongAxis(within, axis), own.rule.most);
    if (sets[axis].empty() || sets[axis].back() < ceiling) sets[axis].push_back(ceiling);
  }
  if (sets.size() == 1 || automatic.size() > kMostTogether) {
    for (const size_t axis : automatic) {
      sets[axis] = SolveLine(AlongAxis(within, axis), axes_[axis], sets[axis].back(), row_ns);
    }
  } else if (!automatic.empty()) {
    SolveTogether(within, automatic, row_ns, sets);
  }
  for (size_t axis = 0; axis < sets.size(); ++axis) {
    for (int64_t& size : sets[axis]) {
      size = (size + axes_[axis].step - 1) / axes_[axis].step * axes_[axis].step;
    }
    sets[axis].erase(std::unique(sets[axis].begin(), sets[axis].end()), sets[axis].end());
  }
  return sets;
}

void BoundaryChoice::SolveTogether(absl::Span<const WeightedSizes> seen,
                                   absl::Span<const size_t> automatic, const BoundaryCost& row_ns,
                                   BoundarySets& sets) const {
  GridOptions grid{.fixed = sets};
  std::vector<int64_t> largest;
  for (size_t axis = 0; axis < sets.size(); ++axis) {
    grid.most.push_back(axes_[axis].rule.most);
    largest.push_back(sets[axis].empty() ? 1 : sets[axis].back());
  }
  std::vector<WeightedSizes> with_largest = Coarse(seen);
  with_largest.push_back({largest, kUnseenWeight});
  for (const size_t axis : automatic) grid.fixed[axis].clear();
  const BindingCost cost = [&](absl::Span<const int64_t>, absl::Span<const int64_t> binding) {
    return row_ns(measure_.Elements(binding));
  };
  sets = SolveGrid(with_largest, cost, grid).boundaries;
}

}  // namespace reprise
