#include "runtime/bucket/advisor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "runtime/bucket/grid_solver.h"
#include "runtime/bucket/solver.h"

namespace reprise {
namespace {

// Requests that stand for the present: what the past is compared with.
constexpr size_t kRecent = 256;
// A drift is a distance above this many times what chance does. (At 1.63 chance exceeds it once in
// a hundred looks, at 2.2 once in ten thousand.)
constexpr double kDriftFactor = 2.2;
constexpr double kLeastSaving = 0.02;
constexpr double kLeastErrors = 4;
// Of a bucket that nothing seen falls into.
constexpr double kUnseenShare = 1e-3;
// A larger bucket of rows with a smaller share of the replays runs on the largest that is allowed.
constexpr double kLeastBatchShare = 0.01;
constexpr double kBatchDecay = 1 - 1.0 / 1024;
// What the solver must hold beside what was seen, though it costs nothing.
constexpr double kUnseenWeight = 1e-6;
// The next request that is longer than all before: boundaries are solved for as if one had come.
constexpr double kNextWeight = 1;
// What a row costs, for the choice of boundaries, is this share in proportion to its size and the
// rest as measured: the first under which the boundaries found pad hardly more than those of least
// padding. Half at least: next to other work the times of short replays are mostly noise.
constexpr double kElementShares[] = {0.5, 0.75, 1};
constexpr double kMostElements = 1.005;
// The largest bucket grows when more than this share of what was seen is larger, and holds all but
// as much afterwards. So many requests are enough to see that.
constexpr double kMostBeyond = 0.01;
constexpr int64_t kFewBeyond = 64;
// While it learns it looks every so often; when it has seen most of what there is to see, where the
// requests are others than those that the set was solved for, and when twice as many were seen, at
// most so many apart.
constexpr int64_t kLearning = 768;
constexpr int64_t kFirstDoubling = 2048;
constexpr int64_t kMostApart = 16384;
// Several axes at once are solved over at most about this many sizes of each.
constexpr size_t kMostGridSizes = 96;
constexpr double kNsPerSecond = 1e9;

int64_t Holding(absl::Span<const int64_t> boundaries, int64_t size) {
  const auto it = std::lower_bound(boundaries.begin(), boundaries.end(), size);
  return it == boundaries.end() ? size : *it;
}

double Product(absl::Span<const int64_t> sizes) {
  double product = 1;
  for (int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

// The elements of a row of `sizes` in its bucket.
double Padded(absl::Span<const int64_t> sizes, const BoundarySets& sets) {
  double product = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    product *= static_cast<double>(Holding(sets[i], sizes[i]));
  }
  return product;
}

// What a row of a size costs, for the choice of boundaries.
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
    // Before anything was measured, time is elements.
    if (ns_per_element_ <= 0) return measured;
    return element_share_ * ns_per_element_ * static_cast<double>(size) +
           (1 - element_share_) * measured;
  }

 private:
  const ReplayCost& cost_;
  const double element_share_;
  double ns_per_element_ = 0;
};

// The boundaries of one axis. The last one is `ceiling`, which holds everything seen. It is one of
// those that the rule allows; or beside them, where it only waits for what nobody sends: all that
// came is held by a smaller one of those in force at first.
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

// The half that request `i` belongs to: scattered, so that no rhythm of clients follows it.
int HalfOf(int64_t i) {
  return static_cast<int>((static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u) >> 63);
}

// How far `kRecent` requests of so many rows in the mean may be by chance from others of the same
// kind, which are `weight` rows.
double Chance(double mean_rows, double weight) {
  const double requests = std::max(weight / mean_rows, 1.0);
  return kDriftFactor * std::sqrt(1.0 / kRecent + 1.0 / requests);
}

// Looks that are due until so many requests were seen, beyond those while it learns.
int64_t LooksUntil(int64_t requests) {
  int64_t looks = 0;
  for (int64_t at = kFirstDoubling; at <= requests; at += std::min(at, kMostApart)) ++looks;
  return looks;
}

// Sizes rounded up so far that few enough of them differ along each axis.
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

BucketAdvisor::BucketAdvisor(AdvisorOptions options)
    : options_(std::move(options)),
      // Each half sees every other request.
      halves_{SizeHistogram(options_.half_life / 2), SizeHistogram(options_.half_life / 2)},
      next_look_(options_.first_after) {
  for (const AdvisorAxis& axis : options_.axes) {
    boundaries_.push_back(axis.start);
    learns_ = learns_ || (axis.rule.learns() && !axis.start.empty());
  }
}

bool BucketAdvisor::MayGrow(size_t axis) const {
  return options_.takes && options_.axes[axis].rule.learns();
}

bool BucketAdvisor::Counts(absl::Span<const int64_t> sizes) const {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > kLargestSize || boundaries_[i].empty()) return false;
    if (sizes[i] > boundaries_[i].back() && !MayGrow(i)) return false;
  }
  return true;
}

int64_t BucketAdvisor::Ceiling(absl::Span<const WeightedSize> seen, size_t axis) const {
  const int64_t now = boundaries_[axis].back();
  if (!MayGrow(axis)) return now;
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
    if (options_.takes(axis, size)) return size;
    if (size > last->size && last->size > size / 2 && options_.takes(axis, last->size)) {
      return last->size;
    }
  }
  return now;
}

void BucketAdvisor::Remember(const Seen& seen) {
  halves_[HalfOf(seen_)].Add(seen.sizes, static_cast<double>(seen.rows));
}

void BucketAdvisor::RecordRequest(absl::Span<const int64_t> sizes, int64_t rows, int64_t now_ns) {
  if (sizes.size() != options_.axes.size()) return;
  ++seen_;
  // What is longer than every bucket may ever be runs exact, whatever the buckets are.
  if (!learns_ || !Counts(sizes)) return;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] <= boundaries_[i].back()) continue;
    if (++beyond_ == kFewBeyond) next_look_ = std::min(next_look_, seen_);
    break;
  }
  recent_.push_back({{sizes.begin(), sizes.end()}, std::max<int64_t>(rows, 1), now_ns});
  if (recent_.size() > kRecent) recent_.pop_front();
  Remember(recent_.back());
}

void BucketAdvisor::RecordReplay(int64_t rows, int64_t batch_bucket, int64_t row_size, int64_t ns) {
  cost_.Record(rows, row_size, ns);
  for (auto& [bucket, weight] : batches_) weight *= kBatchDecay;
  batches_[batch_bucket] += 1;
}

bool BucketAdvisor::Sound(const BoundarySets& boundaries) const {
  if (boundaries.size() != options_.axes.size()) return false;
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const AdvisorAxis& axis = options_.axes[i];
    const std::vector<int64_t>& sizes = boundaries[i];
    if (!axis.rule.learns() || axis.start.empty()) {
      if (sizes != axis.start) return false;
      continue;
    }
    // The largest may be there beside those of the rule.
    if (sizes.empty() || sizes.size() > static_cast<size_t>(axis.rule.most) + 1 ||
        sizes.front() < 1 || sizes.back() < axis.start.back() || sizes.back() > kLargestSize ||
        (sizes.back() > axis.start.back() && !MayGrow(i)) ||
        !std::is_sorted(sizes.begin(), sizes.end(), std::less_equal<>())) {
      return sizes == axis.start;
    }
  }
  return true;
}

LearntBuckets BucketAdvisor::Learnt() const {
  LearntBuckets learnt = {.boundaries = boundaries_,
                          .expected_waste = expected_waste_,
                          .halves = {halves_[0].Snapshot(), halves_[1].Snapshot()},
                          .batches = {batches_.begin(), batches_.end()},
                          .costs = cost_.Samples()};
  for (const AdvisorAxis& axis : options_.axes) learnt.start.push_back(axis.start);
  return learnt;
}

void BucketAdvisor::Restore(const LearntBuckets& learnt) {
  cost_.Restore(learnt.costs);
  if (!learns_) return;
  for (const auto& [bucket, weight] : learnt.batches) {
    if (bucket >= 1 && weight > 0 && std::isfinite(weight)) batches_[bucket] = weight;
  }
  BoundarySets start;
  for (const AdvisorAxis& axis : options_.axes) start.push_back(axis.start);
  const bool same = learnt.start == start && Sound(learnt.boundaries);
  if (same) boundaries_ = learnt.boundaries;
  for (int half = 0; half < 2; ++half) {
    for (const WeightedSizes& one : learnt.halves[half]) {
      if (one.sizes.size() != options_.axes.size() || !Counts(one.sizes)) continue;
      if (one.weight > 0 && std::isfinite(one.weight)) halves_[half].Add(one.sizes, one.weight);
    }
  }
  if (!same || boundaries_ == start) return;
  expected_waste_ = learnt.expected_waste;
  const std::vector<WeightedSizes> all = Remembered();
  for (size_t axis = 0; axis < options_.axes.size(); ++axis) {
    solved_for_.push_back(AlongAxis(all, axis));
  }
}

void BucketAdvisor::ForgetAllButRecent() {
  for (SizeHistogram& half : halves_) half.Clear();
  for (size_t i = 0; i < recent_.size(); ++i) {
    halves_[HalfOf(static_cast<int64_t>(i))].Add(recent_[i].sizes,
                                                 static_cast<double>(recent_[i].rows));
  }
}

std::vector<WeightedSizes> BucketAdvisor::Remembered() const {
  SizeHistogram both;
  for (const SizeHistogram& half : halves_) {
    for (const WeightedSizes& one : half.Snapshot()) both.Add(one.sizes, one.weight);
  }
  return both.Snapshot();
}

double BucketAdvisor::RequestsPerSecond(int64_t now_ns) const {
  if (recent_.size() < 2) return 0;
  const double span = static_cast<double>(now_ns - recent_.front().at_ns) / kNsPerSecond;
  return static_cast<double>(recent_.size()) / std::max(span, 1e-6);
}

bool BucketAdvisor::Drifting() {
  if (settle_until_ > 0) {
    if (seen_ < settle_until_) return true;
    settle_until_ = 0;
    ForgetAllButRecent();
    return false;
  }
  if (recent_.size() < kRecent || seen_ < 2 * static_cast<int64_t>(kRecent)) return false;
  SizeHistogram now;
  for (const Seen& one : recent_) now.Add(one.sizes, static_cast<double>(one.rows));
  const std::vector<WeightedSizes> present = now.Snapshot();
  const std::vector<WeightedSizes> past = Remembered();
  double past_weight = 0;
  for (const WeightedSizes& one : past) past_weight += one.weight;
  const double chance = Chance(now.total_weight() / static_cast<double>(kRecent), past_weight);
  drift_ = 0;
  bool drifts = false;
  for (size_t axis = 0; axis < options_.axes.size(); ++axis) {
    const auto lengths = AlongAxis(present, axis);
    drifts = drifts || DistributionDistance(lengths, AlongAxis(past, axis)) > chance;
    if (axis < solved_for_.size()) {
      drift_ = std::max(drift_, DistributionDistance(lengths, solved_for_[axis]));
    }
  }
  if (!drifts) return false;
  // Until none of the old ones is among the recent requests.
  settle_until_ = seen_ + static_cast<int64_t>(kRecent);
  return true;
}

double BucketAdvisor::Elements(absl::Span<const WeightedSizes> seen,
                               const BoundarySets& sets) const {
  double computed = 0;
  for (const WeightedSizes& one : seen) computed += one.weight * Padded(one.sizes, sets);
  return computed;
}

double BucketAdvisor::Waste(absl::Span<const WeightedSizes> seen, const BoundarySets& sets) const {
  double valid = 0;
  for (const WeightedSizes& one : seen) valid += one.weight * Product(one.sizes);
  const double computed = Elements(seen, sets);
  return computed > 0 ? 1 - valid / computed : 0;
}

BoundarySets BucketAdvisor::Solve(absl::Span<const WeightedSizes> seen) const {
  const double least = Elements(seen, SolveFor(seen, RowCost(cost_, 1)));
  BoundarySets sets;
  for (const double share : kElementShares) {
    sets = SolveFor(seen, RowCost(cost_, share));
    if (Elements(seen, sets) <= least * kMostElements) break;
  }
  return sets;
}

BoundarySets BucketAdvisor::SolveFor(absl::Span<const WeightedSizes> seen,
                                     const BoundaryCost& row_ns) const {
  BoundarySets sets = boundaries_;
  std::vector<size_t> automatic;
  for (size_t axis = 0; axis < sets.size(); ++axis) {
    const AdvisorAxis& own = options_.axes[axis];
    if (own.start.empty() || !own.rule.learns()) continue;
    const int64_t ceiling = Ceiling(AlongAxis(seen, axis), axis);
    sets[axis] = {ceiling};
    if (own.rule.kind == BoundaryRule::Kind::kAuto) automatic.push_back(axis);
  }
  // What is larger still runs exact.
  std::vector<WeightedSizes> within;
  for (const WeightedSizes& one : seen) {
    bool fits = true;
    for (size_t axis = 0; axis < sets.size(); ++axis) {
      fits = fits && (sets[axis].empty() || one.sizes[axis] <= sets[axis].back());
    }
    if (fits) within.push_back(one);
  }
  for (size_t axis = 0; axis < sets.size(); ++axis) {
    const AdvisorAxis& own = options_.axes[axis];
    if (own.start.empty() || own.rule.kind != BoundaryRule::Kind::kPercentile) continue;
    // As the rule says, and what holds the lengths that did not come yet.
    const int64_t ceiling = sets[axis].back();
    sets[axis] = PercentileBoundaries(AlongAxis(within, axis), own.rule.most);
    if (sets[axis].empty() || sets[axis].back() < ceiling) sets[axis].push_back(ceiling);
  }
  if (sets.size() == 1 && automatic.size() == 1) {
    sets[0] = SolveLine(AlongAxis(within, 0), options_.axes[0], sets[0].back(), row_ns);
  } else if (!automatic.empty()) {
    SolveTogether(within, automatic, row_ns, sets);
  }
  return sets;
}

void BucketAdvisor::SolveTogether(absl::Span<const WeightedSizes> seen,
                                  absl::Span<const size_t> automatic, const BoundaryCost& row_ns,
                                  BoundarySets& sets) const {
  GridOptions grid{.fixed = sets};
  std::vector<int64_t> largest;
  for (size_t axis = 0; axis < sets.size(); ++axis) {
    grid.most.push_back(options_.axes[axis].rule.most);
    largest.push_back(sets[axis].empty() ? 1 : sets[axis].back());
  }
  std::vector<WeightedSizes> with_largest = Coarse(seen);
  with_largest.push_back({largest, kUnseenWeight});
  for (const size_t axis : automatic) grid.fixed[axis].clear();
  const BindingCost cost = [&](absl::Span<const int64_t>, absl::Span<const int64_t> binding) {
    return row_ns(static_cast<int64_t>(Product(binding)));
  };
  sets = SolveGrid(with_largest, cost, grid).boundaries;
}

BucketAdvisor::Gain BucketAdvisor::GainOf(absl::Span<const WeightedSizes> seen,
                                          const BoundarySets& before,
                                          const BoundarySets& after) const {
  const RowCost row_ns(cost_);
  const auto cost_of = [&](absl::Span<const int64_t> sizes, const BoundarySets& sets) {
    return row_ns(static_cast<int64_t>(Padded(sizes, sets)));
  };
  double weight = 0, gain = 0, cost = 0, squares = 0;
  for (const WeightedSizes& one : seen) {
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

std::vector<WantedRecipe> BucketAdvisor::Captures(absl::Span<const WeightedSizes> seen,
                                                  const BoundarySets& sets) const {
  SizeHistogram cells;
  double total = 0;
  for (const WeightedSizes& one : seen) {
    std::vector<int64_t> cell;
    for (size_t i = 0; i < sets.size(); ++i) cell.push_back(Holding(sets[i], one.sizes[i]));
    cells.Add(cell, one.weight);
    total += one.weight;
  }
  // What no one sent yet, but would otherwise be captured once someone does.
  std::vector<int64_t> largest;
  for (const auto& set : sets) largest.push_back(set.empty() ? 1 : set.back());
  cells.Add(largest, kUnseenShare);
  if (sets.size() == 1) {
    for (const int64_t size : sets[0]) cells.Add({{size}}, kUnseenShare);
  }
  // A recipe serves fewer rows as fast: one for all that are used.
  double replays = 0;
  for (const auto& [bucket, weight] : batches_) replays += weight;
  int64_t batch = 1;
  for (const auto& [bucket, weight] : batches_) {
    if (weight >= kLeastBatchShare * replays) batch = bucket;
  }
  std::vector<WantedRecipe> wanted, kept;
  for (const WeightedSizes& cell : cells.Snapshot()) {
    bool is_new = false;
    for (size_t i = 0; i < sets.size() && !is_new; ++i) {
      is_new = !std::binary_search(boundaries_[i].begin(), boundaries_[i].end(), cell.sizes[i]);
    }
    if (is_new) {
      wanted.push_back({batch, cell.sizes, cell.weight / total});
    } else {
      kept.push_back({WantedRecipe::kMostRows, cell.sizes, 0});
    }
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  wanted.insert(wanted.end(), kept.begin(), kept.end());
  return wanted;
}

bool BucketAdvisor::BeginLook() {
  next_look_ = seen_ + options_.consider_every;
  if (Drifting()) return false;
  if (solved_for_.empty()) return true;
  double rows = 0, weight = 0;
  for (const Seen& one : recent_) rows += static_cast<double>(one.rows);
  for (const WeightedSize& one : solved_for_[0]) weight += one.weight;
  const double mean_rows = rows / static_cast<double>(std::max<size_t>(recent_.size(), 1));
  if (drift_ > Chance(mean_rows, weight)) return true;
  // Since the start, or since a drift was over.
  const int64_t learnt = halves_[0].observations() + halves_[1].observations();
  return learnt <= kLearning || LooksUntil(learnt) != LooksUntil(learnt - options_.consider_every);
}

std::optional<BucketAdvice> BucketAdvisor::Advise(int64_t now_ns) const {
  const std::vector<WeightedSizes> halves[2] = {halves_[0].Snapshot(), halves_[1].Snapshot()};
  if (halves[0].empty() || halves[1].empty()) return std::nullopt;
  Gain gains[2];
  for (int i = 0; i < 2; ++i) gains[i] = GainOf(halves[1 - i], boundaries_, Solve(halves[i]));
  const double error = std::hypot(gains[0].error, gains[1].error) / 2;
  const double saving = (gains[0].share + gains[1].share) / 2;
  const bool saves = std::min(gains[0].share, gains[1].share) >= kLeastSaving / 2 &&
                     saving >= std::max(kLeastSaving, kLeastErrors * error);
  // Boundaries that are asked for by their rule, or by requests that none holds: not for what they
  // save.
  bool asked = false;
  for (const AdvisorAxis& axis : options_.axes) {
    asked = asked || (axis.rule.kind == BoundaryRule::Kind::kPercentile && changes_ == 0 &&
                      solved_for_.empty());
  }
  const std::vector<WeightedSizes> all = Remembered();
  for (size_t axis = 0; axis < options_.axes.size(); ++axis) {
    asked = asked || (!boundaries_[axis].empty() &&
                      Ceiling(AlongAxis(all, axis), axis) > boundaries_[axis].back());
  }
  if (!saves && !asked) return std::nullopt;
  BucketAdvice advice{.boundaries = Solve(all), .saving = (gains[0].share + gains[1].share) / 2};
  if (advice.boundaries == boundaries_) return std::nullopt;
  advice.expected_waste = Waste(all, advice.boundaries);
  advice.captures = Captures(all, advice.boundaries);

  const RowCost row_ns(cost_);
  double mean_ns = 0, weight = 0, rows = 0;
  for (const WeightedSizes& one : all) {
    mean_ns += one.weight * row_ns(static_cast<int64_t>(Padded(one.sizes, boundaries_)));
    weight += one.weight;
  }
  for (const Seen& one : recent_) rows += static_cast<double>(one.rows);
  rows /= static_cast<double>(std::max<size_t>(recent_.size(), 1));
  const double saved_ns_per_s = advice.saving * mean_ns / weight * rows * RequestsPerSecond(now_ns);
  const auto captures =
      std::count_if(advice.captures.begin(), advice.captures.end(),
                    [](const auto& one) { return one.batch != WantedRecipe::kMostRows; });
  // Each of them, and one for the most rows beside it.
  advice.payback_s = saved_ns_per_s > 0
                         ? 2 * static_cast<double>(captures) * cost_.CaptureNs() / saved_ns_per_s
                         : 1e18;
  if (!asked && advice.payback_s * kNsPerSecond > static_cast<double>(options_.payback_ns)) {
    return std::nullopt;
  }
  return advice;
}

void BucketAdvisor::Adopt(const BoundarySets& boundaries) {
  boundaries_ = boundaries;
  ++changes_;
  const std::vector<WeightedSizes> all = Remembered();
  solved_for_.clear();
  for (size_t axis = 0; axis < boundaries_.size(); ++axis) {
    solved_for_.push_back(AlongAxis(all, axis));
  }
  expected_waste_ = Waste(all, boundaries_);
  drift_ = 0;
  beyond_ = 0;
}

BucketAdvisor::State BucketAdvisor::Look() const {
  const std::vector<WeightedSizes> all = Remembered();
  State state{.boundaries = boundaries_,
              .expected_waste = expected_waste_,
              .current_waste = Waste(all, boundaries_),
              .drift = drift_,
              .requests = seen_,
              .changes = changes_};
  if (changes_ == 0) state.expected_waste = state.current_waste;
  state.best_waste = all.empty() ? 0 : Waste(all, Solve(all));
  if (recent_.size() >= 2) state.requests_per_s = RequestsPerSecond(recent_.back().at_ns);
  return state;
}

}  // namespace reprise
