#include "runtime/engine/traffic/bucket_learner.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"

namespace reprise {
namespace {

// The cost that planners read lags at most this many replays; the first ones are shown each.
constexpr int64_t kRefreshEvery = 64;
constexpr int64_t kFirstReplays = 64;
// Replays between two reports of a set that stays.
constexpr int64_t kReportEvery = 256;
// Waste is averaged over about this many replays.
constexpr double kWasteDecay = 1 - 1.0 / 1024;
constexpr size_t kMostShapes = 65536;
// Requests without a look after a set that could not be captured.
constexpr int64_t kQuietRequests = 16384;

}  // namespace

BucketLearner::BucketLearner(Options options)
    : mode_(options.mode),
      learns_(options.mode != BucketMode::kOff &&
              std::any_of(options.advisor.axes.begin(), options.advisor.axes.end(),
                          [](const AdvisorAxis& axis) { return axis.rule.learns(); })),
      in_force_(std::make_shared<const BucketPolicy>(std::move(options.first))),
      cost_(std::make_shared<const ReplayCost>()),
      advisor_(std::move(options.advisor)) {
  for (const AdvisorAxis& axis : advisor_.axes()) axes_.push_back(axis.label);
  if (options.learnt == nullptr) return;
  LearntBuckets learnt = *options.learnt;
  // Better buckets are only taken over where they would be put in force.
  if (mode_ != BucketMode::kApply) learnt.boundaries = learnt.start;
  advisor_.Restore(learnt);
  cost_ = std::make_shared<const ReplayCost>(advisor_.cost());
  BucketPolicy policy = *in_force_;
  const BoundarySets boundaries = advisor_.Learnt().boundaries;
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (AxisBuckets& axis : policy.axes) {
      if (axis.axis == axes_[i] && !boundaries[i].empty()) axis.sizes = boundaries[i];
    }
  }
  in_force_ = std::make_shared<const BucketPolicy>(std::move(policy));
}

LearntBuckets BucketLearner::Learnt() const {
  MutexLock lock(mutex_);
  return advisor_.Learnt();
}

std::shared_ptr<const BucketPolicy> BucketLearner::InForce() const {
  MutexLock lock(mutex_);
  return in_force_;
}

std::shared_ptr<const ReplayCost> BucketLearner::Cost() const {
  MutexLock lock(mutex_);
  return cost_;
}

void BucketLearner::RecordRequest(absl::Span<const int64_t> sizes, int64_t rows, int64_t now_ns) {
  if (!learns_) return;
  MutexLock lock(mutex_);
  advisor_.RecordRequest(sizes, rows, now_ns);
}

void BucketLearner::RecordReplay(const Replay& replay) {
  MutexLock lock(mutex_);
  advisor_.RecordReplay(replay.rows, replay.batch_bucket, replay.row_size, replay.ns);
  valid_ = valid_ * kWasteDecay + static_cast<double>(replay.valid);
  computed_ = computed_ * kWasteDecay + static_cast<double>(replay.rows) * replay.row_size;
  ++replays_;
  if (replays_ <= kFirstReplays || replays_ % kRefreshEvery == 0) {
    cost_ = std::make_shared<const ReplayCost>(advisor_.cost());
  }
}

void BucketLearner::RecordCapture(int64_t ns) {
  MutexLock lock(mutex_);
  advisor_.RecordCapture(ns);
}

bool BucketLearner::IsNewShape(absl::Span<const int64_t> sizes) {
  const uint64_t hash = absl::HashOf(sizes);
  MutexLock lock(mutex_);
  return shapes_.size() < kMostShapes && shapes_.insert(hash).second;
}

bool BucketLearner::BeginLook() {
  MutexLock lock(mutex_);
  if (!learns_) {
    if (looking_ || replays_ < next_report_) return false;
    next_report_ = replays_ + kReportEvery;
    looking_ = true;
    return true;
  }
  if (looking_ || !advisor_.due() || advisor_.seen() < quiet_until_) return false;
  looking_ = true;
  return true;
}

std::optional<BucketLearner::Found> BucketLearner::Look(int64_t now_ns) {
  if (!learns_) return std::nullopt;
  std::optional<BucketAdvisor> copy;
  Found found;
  {
    MutexLock lock(mutex_);
    if (!advisor_.BeginLook()) return std::nullopt;
    copy.emplace(advisor_);
    found.policy = *in_force_;
  }
  std::optional<BucketAdvice> advice = copy->Advise(now_ns);
  if (!advice.has_value()) {
    MutexLock lock(mutex_);
    suggestion_.reset();
    return std::nullopt;
  }
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (AxisBuckets& axis : found.policy.axes) {
      if (axis.axis == axes_[i]) axis.sizes = advice->boundaries[i];
    }
  }
  found.apply = mode_ == BucketMode::kApply;
  found.advice = *advice;
  MutexLock lock(mutex_);
  found.news = !suggestion_.has_value() || suggestion_->boundaries != advice->boundaries;
  suggestion_ = std::move(advice);
  return found;
}

void BucketLearner::Adopt(const Found& found) {
  auto set = std::make_shared<const BucketPolicy>(found.policy);
  MutexLock lock(mutex_);
  in_force_.swap(set);
  advisor_.Adopt(found.advice.boundaries);
  valid_ = computed_ = 0;
  suggestion_.reset();
}

bool BucketLearner::looking() const {
  MutexLock lock(mutex_);
  return looking_;
}

void BucketLearner::EndLook(bool failed) {
  MutexLock lock(mutex_);
  looking_ = false;
  if (failed) quiet_until_ = advisor_.seen() + kQuietRequests;
}

BucketReport BucketLearner::Report() const {
  std::optional<BucketAdvisor> copy;
  BucketReport report{.mode = learns_ ? mode_ : BucketMode::kOff, .axes = axes_};
  {
    MutexLock lock(mutex_);
    copy.emplace(advisor_);
    report.actual_waste = computed_ > 0 ? std::max(0.0, 1 - valid_ / computed_) : 0;
    report.suggestion = suggestion_;
    report.changing = looking_ && suggestion_.has_value();
  }
  report.state = copy->Look();
  return report;
}

}  // namespace reprise
