// SizeHistogram: how often each size was seen, the past fading.
//
// An observation is one size an axis (one axis or several: sizes seen together stay together). Its
// weight halves with every `half_life` observations after it. Up to 4096 distinct ones are kept as
// they are; beyond that sizes are rounded up to fewer significant bits, so that memory stays
// bounded and a boundary taken from the histogram still holds every seen size.
//
// Threads: not safe; the caller guards it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"

namespace reprise {

// Sizes seen together, by axis, and their weight.
struct WeightedSizes {
  std::vector<int64_t> sizes;
  double weight = 0;
};

// A size along one axis and its weight.
struct WeightedSize {
  int64_t size = 0;
  double weight = 0;
};

class SizeHistogram {
 public:
  static constexpr size_t kMaxDistinct = 4096;

  // `half_life` in observations; 0: nothing fades.
  explicit SizeHistogram(double half_life = 0);

  void Add(absl::Span<const int64_t> sizes, double weight = 1);
  // Forgets everything.
  void Clear();

  bool empty() const { return weights_.empty(); }
  size_t distinct() const { return weights_.size(); }
  // Returns the weight in units of the newest observation: n without decay, about 1.44 half-lives
  // at most with it.
  double total_weight() const;
  // Returns the observations since the last Clear(), faded or not.
  int64_t observations() const { return observations_; }

  // Returns the sizes seen with their weights, in ascending order.
  std::vector<WeightedSizes> Snapshot() const;

 private:
  void Coarsen();
  void Rescale();
  void RoundUp(std::vector<int64_t>& sizes) const;

  const double growth_;  // the weight of an observation, over the weight of the one before
  double unit_ = 1;      // weight of the newest observation
  double total_ = 0;
  int64_t observations_ = 0;
  int bits_ = 63;  // significant bits that are kept of a size
  std::map<std::vector<int64_t>, double> weights_;
};

// Returns the weights of one axis alone, in ascending order of its sizes.
std::vector<WeightedSize> AlongAxis(absl::Span<const WeightedSizes> seen, size_t axis);

// Counts each size of a list.
std::vector<WeightedSize> CountSizes(absl::Span<const int64_t> sizes);

// Returns the largest difference between the cumulative shares of two distributions, in [0, 1]: the
// distance of Kolmogorov and Smirnov. 0 where one of them is empty.
double DistributionDistance(absl::Span<const WeightedSize> a, absl::Span<const WeightedSize> b);

}  // namespace reprise
