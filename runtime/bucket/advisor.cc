#include "runtime/bucket/advisor.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace reprise {
namespace {

// The number of the latest requests, with which the past is compared.
constexpr size_t kRecent = 256;
// A drift is a distance above this many times the distance by chance. (At 1.63 chance exceeds it
// once in a hundred looks, at 2.2 once in ten thousand.)
constexpr double kDriftFactor = 2.2;
constexpr double kLeastSaving = 0.02;
constexpr double kLeastErrors = 4;
// The share that counts for a bucket into which no seen request falls.
constexpr double kUnseenShare = 1e-3;
// A batch bucket with a smaller share of the replays is replaced by the largest allowed one.
constexpr double kLeastBatchShare = 0.01;
constexpr double kBatchDecay = 1 - 1.0 / 1024;
// This many requests beyond the largest bucket are enough to look whether it should grow.
constexpr int64_t kFewBeyond = 64;
// While it learns it looks at short intervals. Once it has learnt enough, it looks where the
// distribution of requests differs from the one that the set was solved for, and when the number of
// requests has doubled, at most kMostApart later.
constexpr int64_t kLearning = 768;
constexpr int64_t kFirstDoubling = 2048;
constexpr int64_t kMostApart = 16384;
constexpr double kNsPerSecond = 1e9;

// Returns the half that request `i` belongs to: scattered, so that no rhythm of clients follows it.
int HalfOf(int64_t i) {
  return static_cast<int>((static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u) >> 63);
}

// Returns the distance that chance alone may put between `kRecent` requests of `mean_rows` rows
// each and others of the same kind, which are `weight` rows.
double Chance(double mean_rows, double weight) {
  const double requests = std::max(weight / mean_rows, 1.0);
  return kDriftFactor * std::sqrt(1.0 / kRecent + 1.0 / requests);
}

// Returns the looks that are due until `requests` were seen, beyond the looks while it learns.
int64_t LooksUntil(int64_t requests) {
  int64_t looks = 0;
  for (int64_t at = kFirstDoubling; at <= requests; at += std::min(at, kMostApart)) ++looks;
  return looks;
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
    if (sizes[i] % options_.axes[i].step != 0) return false;  // No bucket holds it.
    if (sizes[i] > boundaries_[i].back() && !MayGrow(i)) return false;
  }
  return true;
}

void BucketAdvisor::Remember(const Seen& seen) {
  halves_[HalfOf(seen_)].Add(seen.sizes, static_cast<double>(seen.rows));
}

void BucketAdvisor::RecordRequest(absl::Span<const int64_t> sizes, int64_t rows, int64_t now_ns) {
  if (sizes.size() != options_.axes.size()) return;
  ++seen_;
  // Requests that are longer than any bucket may ever be run exact with all buckets.
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
    const auto off_step = [&](int64_t size) { return size % axis.step != 0; };
    if (std::any_of(sizes.begin(), sizes.end(), off_step)) return false;
    // The rule's sizes, and the largest besides.
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
  // Drift is not checked again until none of the old requests is among the recent ones.
  settle_until_ = seen_ + static_cast<int64_t>(kRecent);
  return true;
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
  // Sizes that no request has yet, but that would otherwise be captured at the first one.
  std::vector<int64_t> largest;
  for (const auto& set : sets) largest.push_back(set.empty() ? 1 : set.back());
  cells.Add(largest, kUnseenShare);
  if (sets.size() == 1) {
    for (const int64_t size : sets[0]) cells.Add({{size}}, kUnseenShare);
  }
  // A recipe serves fewer rows at the same speed: one for all numbers of rows that are used.
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
  // Counted from the start, or from the end of a drift.
  const int64_t learnt = halves_[0].observations() + halves_[1].observations();
  return learnt <= kLearning || LooksUntil(learnt) != LooksUntil(learnt - options_.consider_every);
}

std::optional<BucketAdvice> BucketAdvisor::Advise(int64_t now_ns) const {
  const std::vector<WeightedSizes> halves[2] = {halves_[0].Snapshot(), halves_[1].Snapshot()};
  if (halves[0].empty() || halves[1].empty()) return std::nullopt;
  const BoundaryChoice choice = Choice();
  BoundaryGain gains[2];
  for (int i = 0; i < 2; ++i) {
    gains[i] =
        GainOf({halves[1 - i], options_.measure}, boundaries_, choice.Solve(halves[i]), cost_);
  }
  const double error = std::hypot(gains[0].error, gains[1].error) / 2;
  const double saving = (gains[0].share + gains[1].share) / 2;
  const bool saves = std::min(gains[0].share, gains[1].share) >= kLeastSaving / 2 &&
                     saving >= std::max(kLeastSaving, kLeastErrors * error);
  // Boundaries that their rule asks for, or requests that no bucket holds: not for the time that
  // they save.
  const std::vector<WeightedSizes> all = Remembered();
  bool asked = choice.SomeShouldGrow(all);
  for (const AdvisorAxis& axis : options_.axes) {
    asked = asked || (axis.rule.kind == BoundaryRule::Kind::kPercentile && changes_ == 0 &&
                      solved_for_.empty());
  }
  if (!saves && !asked) return std::nullopt;
  BucketAdvice advice{.boundaries = choice.Solve(all), .saving = saving};
  if (advice.boundaries == boundaries_) return std::nullopt;
  advice.expected_waste = PaddingShare({all, options_.measure}, advice.boundaries);
  advice.captures = Captures(all, advice.boundaries);

  double rows = 0;
  for (const Seen& one : recent_) rows += static_cast<double>(one.rows);
  rows /= static_cast<double>(std::max<size_t>(recent_.size(), 1));
  const double saved_ns_per_s = saving * MeanRowNs({all, options_.measure}, boundaries_, cost_) *
                                rows * RequestsPerSecond(now_ns);
  const auto captures =
      std::count_if(advice.captures.begin(), advice.captures.end(),
                    [](const auto& one) { return one.batch != WantedRecipe::kMostRows; });
  // Each of them, and one for the most rows with it.
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
  expected_waste_ = PaddingShare({all, options_.measure}, boundaries_);
  drift_ = 0;
  beyond_ = 0;
}

BucketAdvisor::State BucketAdvisor::Look() const {
  const std::vector<WeightedSizes> all = Remembered();
  State state{.boundaries = boundaries_,
              .expected_waste = expected_waste_,
              .current_waste = PaddingShare({all, options_.measure}, boundaries_),
              .drift = drift_,
              .requests = seen_,
              .changes = changes_};
  if (changes_ == 0) state.expected_waste = state.current_waste;
  state.best_waste = all.empty() ? 0 : PaddingShare({all, options_.measure}, Choice().Solve(all));
  if (recent_.size() >= 2) state.requests_per_s = RequestsPerSecond(recent_.back().at_ns);
  return state;
}

}  // namespace reprise
