#include "runtime/bucket/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise {
namespace {

// Coarsening begins at this number of bits, and ends when enough room is free.
constexpr int kFirstCoarseBits = 10;
constexpr double kLargestUnit = 1e100;
// Weights below this share of an observation are forgotten.
constexpr double kForgottenShare = 1e-4;

}  // namespace

SizeHistogram::SizeHistogram(double half_life)
    : growth_(half_life > 0 ? std::exp2(1 / half_life) : 1) {}

void SizeHistogram::RoundUp(std::vector<int64_t>& sizes) const {
  for (int64_t& size : sizes) {
    if (size <= 0) continue;
    const int shift = static_cast<int>(std::bit_width(static_cast<uint64_t>(size))) - bits_;
    if (shift <= 0) continue;
    const int64_t step = int64_t{1} << shift;
    size = (size + step - 1) / step * step;
  }
}

void SizeHistogram::Add(absl::Span<const int64_t> sizes, double weight) {
  unit_ *= growth_;
  if (unit_ > kLargestUnit) Rescale();
  std::vector<int64_t> rounded(sizes.begin(), sizes.end());
  RoundUp(rounded);
  weights_[std::move(rounded)] += weight * unit_;
  total_ += weight * unit_;
  ++observations_;
  if (weights_.size() > kMaxDistinct) Coarsen();
}

void SizeHistogram::Coarsen() {
  Rescale();  // faded ones make room first
  while (weights_.size() > kMaxDistinct * 3 / 4 && bits_ > 1) {
    bits_ = std::min(bits_ - 1, kFirstCoarseBits);
    std::map<std::vector<int64_t>, double> coarse;
    for (const auto& [sizes, weight] : weights_) {
      std::vector<int64_t> rounded = sizes;
      RoundUp(rounded);
      coarse[std::move(rounded)] += weight;
    }
    weights_ = std::move(coarse);
  }
}

void SizeHistogram::Rescale() {
  total_ = 0;
  for (auto it = weights_.begin(); it != weights_.end();) {
    it->second /= unit_;
    if (it->second < kForgottenShare) {
      it = weights_.erase(it);
    } else {
      total_ += it->second;
      ++it;
    }
  }
  unit_ = 1;
}

void SizeHistogram::Clear() {
  weights_.clear();
  unit_ = 1;
  total_ = 0;
  observations_ = 0;
  bits_ = 63;
}

double SizeHistogram::total_weight() const { return total_ / unit_; }

std::vector<WeightedSizes> SizeHistogram::Snapshot() const {
  std::vector<WeightedSizes> result;
  for (const auto& [sizes, weight] : weights_) {
    if (weight / unit_ >= kForgottenShare) result.push_back({sizes, weight / unit_});
  }
  return result;
}

std::vector<WeightedSize> AlongAxis(absl::Span<const WeightedSizes> seen, size_t axis) {
  std::map<int64_t, double> weights;
  for (const WeightedSizes& one : seen) weights[one.sizes[axis]] += one.weight;
  std::vector<WeightedSize> result;
  for (const auto& [size, weight] : weights) result.push_back({size, weight});
  return result;
}

std::vector<WeightedSize> CountSizes(absl::Span<const int64_t> sizes) {
  std::vector<int64_t> sorted(sizes.begin(), sizes.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<WeightedSize> result;
  for (int64_t size : sorted) {
    if (result.empty() || result.back().size != size) result.push_back({size, 0});
    ++result.back().weight;
  }
  return result;
}

double DistributionDistance(absl::Span<const WeightedSize> a, absl::Span<const WeightedSize> b) {
  const auto total = [](absl::Span<const WeightedSize> of) {
    double sum = 0;
    for (const WeightedSize& one : of) sum += one.weight;
    return sum;
  };
  const double total_a = total(a), total_b = total(b);
  if (total_a <= 0 || total_b <= 0) return 0;
  double below_a = 0, below_b = 0, distance = 0;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const int64_t size =
        j == b.size() || (i < a.size() && a[i].size <= b[j].size) ? a[i].size : b[j].size;
    for (; i < a.size() && a[i].size == size; ++i) below_a += a[i].weight;
    for (; j < b.size() && b[j].size == size; ++j) below_b += b[j].weight;
    distance = std::max(distance, std::abs(below_a / total_a - below_b / total_b));
  }
  return distance;
}

}  // namespace reprise
