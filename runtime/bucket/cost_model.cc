#include "runtime/bucket/cost_model.h"

#include <algorithm>
#include <cmath>

namespace reprise {
namespace {

// The sums of a row size cover about its last 500 replays.
constexpr double kDecay = 1 - 1.0 / 500;
// A replay that took this many times the known time is noise of the machine, and counts as that.
constexpr double kOutlier = 3;
constexpr double kKnownReplays = 8;
// The prior line through all sizes counts as this many replays at each size.
constexpr double kPriorReplays = 8;
constexpr size_t kMostSizes = 512;
// A new fit after this many replays; the first ones each.
constexpr int64_t kFitEvery = 64;
// The weight of a replay halves after this many replays of any size, so that sizes that are not
// used any more are forgotten, and the weight below which they are.
constexpr double kHalfLife = 2048;
constexpr double kForgottenWeight = 0.5;
// The overhead takes at most this share of the shortest replays.
constexpr double kMostOverhead = 0.8;
// Before anything was measured, an element costs this.
constexpr double kNsPerElement = 1;
constexpr double kOverheadElements = 16;
constexpr double kFirstCaptureNs = 50e6;
constexpr double kCaptureShare = 0.2;  // the newest capture's part of the mean

}  // namespace

void ReplayCost::Record(int64_t rows, int64_t row_size, int64_t ns) {
  if (rows < 1 || row_size < 1 || ns < 0) return;
  if (sums_.size() >= kMostSizes && sums_.count(row_size) == 0) return;
  Sums& sums = sums_[row_size];
  double took = static_cast<double>(ns);
  const double r = static_cast<double>(rows);
  if (sums.weight >= kKnownReplays) {
    // The known time for these rows at this size.
    const double known = std::max(sums.mean_ns() * r * sums.weight / sums.rows, sums.mean_ns());
    took = std::min(took, kOutlier * known);
  }
  for (double* sum : {&sums.weight, &sums.rows, &sums.rows2, &sums.ns, &sums.rows_ns}) {
    *sum *= kDecay;
  }
  sums.weight += 1;
  sums.rows += r;
  sums.rows2 += r * r;
  sums.ns += took;
  sums.rows_ns += r * took;
  ++replays_;
  if (++since_fit_ >= kFitEvery || replays_ <= kFitEvery) Fit();
}

void ReplayCost::RecordCapture(int64_t ns) {
  const double share = captures_ == 0 ? 1 : kCaptureShare;
  capture_ns_ += share * (static_cast<double>(ns) - capture_ns_);
  ++captures_;
}

double ReplayCost::CaptureNs() const { return captures_ == 0 ? kFirstCaptureNs : capture_ns_; }

std::vector<ReplayCost::Sample> ReplayCost::Samples() const {
  std::vector<Sample> samples;
  for (const auto& [size, sums] : sums_) {
    samples.push_back({size, sums.weight, sums.rows, sums.rows2, sums.ns, sums.rows_ns});
  }
  return samples;
}

void ReplayCost::Restore(const std::vector<Sample>& samples) {
  sums_.clear();
  curve_.clear();
  replays_ = 0;
  for (const Sample& one : samples) {
    const bool sound = one.row_size >= 1 && one.weight > 0 && one.rows >= one.weight &&
                       one.rows2 >= one.rows && one.ns >= 0 && one.rows_ns >= one.ns &&
                       std::isfinite(one.rows2) && std::isfinite(one.rows_ns);
    if (!sound || sums_.size() >= kMostSizes) continue;
    sums_[one.row_size] = {one.weight, one.rows, one.rows2, one.ns, one.rows_ns};
    replays_ += static_cast<int64_t>(std::min(one.weight, 1e6));
  }
  if (!sums_.empty()) Fit();
}

void ReplayCost::Fit() {
  const double kept = std::exp2(-static_cast<double>(since_fit_) / kHalfLife);
  for (auto it = sums_.begin(); it != sums_.end();) {
    Sums& sums = it->second;
    for (double* sum : {&sums.weight, &sums.rows, &sums.rows2, &sums.ns, &sums.rows_ns}) {
      *sum *= kept;
    }
    it = sums.weight < kForgottenWeight ? sums_.erase(it) : std::next(it);
  }
  since_fit_ = 0;
  // Least squares of ns = overhead + rows * g(size) with a g of its own for each size: the overhead
  // that the replays of one size with more and fewer rows suggest, relative to their time.
  double said = 0, weight = 0, least_ns = 0;
  for (const auto& [size, sums] : sums_) {
    const double mean = std::max(sums.mean_ns(), 1.0);
    least_ns = least_ns == 0 ? mean : std::min(least_ns, mean);
    const double w = 1 / (mean * mean);
    said += w * (sums.ns - sums.rows_ns * sums.rows / sums.rows2);
    weight += w * (sums.weight - sums.rows * sums.rows / sums.rows2);
  }
  const bool rows_vary = weight * least_ns * least_ns > kPriorReplays / 100;
  overhead_ns_ = rows_vary ? std::clamp(said / weight, 0.0, kMostOverhead * least_ns) : 0;
  // g on a line through the origin: a prior for sizes with few replays.
  double numerator = 0, denominator = 0;
  const auto row_ns = [&](const Sums& sums) {
    return std::max(0.0, sums.rows_ns - overhead_ns_ * sums.rows) / sums.rows2;
  };
  for (const auto& [size, sums] : sums_) {
    numerator += sums.weight * row_ns(sums) / static_cast<double>(size);
    denominator += sums.weight;
  }
  const double slope = numerator / denominator;
  std::vector<Point> points;
  for (const auto& [size, sums] : sums_) {
    const double line = slope * static_cast<double>(size);
    points.push_back(
        {size, (row_ns(sums) * sums.weight + line * kPriorReplays) / (sums.weight + kPriorReplays),
         sums.weight});
  }
  // Pool adjacent violators: larger rows are never cheaper.
  std::vector<Point> curve;
  std::vector<size_t> pooled;
  for (const Point& point : points) {
    curve.push_back(point);
    pooled.push_back(1);
    while (curve.size() > 1 && curve[curve.size() - 2].row_ns > curve.back().row_ns) {
      const Point last = curve.back();
      const size_t count = pooled.back();
      curve.pop_back();
      pooled.pop_back();
      Point& before = curve.back();
      const double sum = before.replays + last.replays;
      before.row_ns = (before.row_ns * before.replays + last.row_ns * last.replays) / sum;
      before.replays = sum;
      pooled.back() += count;
    }
  }
  curve_ = points;
  for (size_t block = 0, at = 0; block < curve.size(); ++block) {
    for (size_t i = 0; i < pooled[block]; ++i) curve_[at++].row_ns = curve[block].row_ns;
  }
}

double ReplayCost::RowNs(int64_t row_size) const {
  const double x = static_cast<double>(row_size);
  if (curve_.empty()) return kNsPerElement * x;
  const auto after =
      std::lower_bound(curve_.begin(), curve_.end(), row_size,
                       [](const Point& point, int64_t size) { return point.row_size < size; });
  const auto at = [](const Point& point) { return static_cast<double>(point.row_size); };
  // Outside of the measured sizes time is in proportion to size.
  if (after == curve_.begin()) return after->row_ns * x / at(*after);
  if (after == curve_.end()) return curve_.back().row_ns * x / at(curve_.back());
  const Point& low = *std::prev(after);
  const double share = (x - at(low)) / (at(*after) - at(low));
  return low.row_ns + share * (after->row_ns - low.row_ns);
}

double ReplayCost::overhead_ns() const {
  return curve_.empty() ? kOverheadElements * kNsPerElement : overhead_ns_;
}

double ReplayCost::Ns(int64_t rows, int64_t row_size) const {
  return overhead_ns() + static_cast<double>(rows) * RowNs(row_size);
}

std::vector<ReplayCost::Point> ReplayCost::Curve() const { return curve_; }

}  // namespace reprise
