#include "runtime/bucket/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace reprise {
namespace {

TEST(SizeHistogramTest, CountsWhatWasSeenTogether) {
  SizeHistogram histogram;
  histogram.Add(std::vector<int64_t>{2, 100});
  histogram.Add(std::vector<int64_t>{1, 100}, 3);
  histogram.Add(std::vector<int64_t>{2, 100});
  const auto seen = histogram.Snapshot();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].sizes, (std::vector<int64_t>{1, 100}));
  EXPECT_EQ(seen[0].weight, 3);
  EXPECT_EQ(seen[1].weight, 2);
  EXPECT_EQ(histogram.total_weight(), 5);
  const auto lengths = AlongAxis(seen, 1);
  ASSERT_EQ(lengths.size(), 1u);
  EXPECT_EQ(lengths[0].weight, 5);
}

TEST(SizeHistogramTest, WeightsHalveWithTheHalfLifeAndFadeAway) {
  SizeHistogram histogram(100);
  histogram.Add(std::vector<int64_t>{1});
  for (int i = 0; i < 100; ++i) histogram.Add(std::vector<int64_t>{2});
  EXPECT_NEAR(histogram.Snapshot()[0].weight, 0.5, 1e-9);
  for (int i = 0; i < 100000; ++i) histogram.Add(std::vector<int64_t>{2});
  const auto seen = histogram.Snapshot();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].sizes[0], 2);
  EXPECT_NEAR(histogram.total_weight(), 100 / std::log(2), 1);
}

TEST(SizeHistogramTest, MemoryIsBoundedAndSizesOnlyGrowWhenTheyAreRounded) {
  SizeHistogram histogram;
  std::mt19937 random(1);
  double total = 0;
  int64_t largest = 0;
  for (int i = 0; i < 200000; ++i) {
    const int64_t size = 1 + random() % 1000000;
    largest = std::max(largest, size);
    total += static_cast<double>(size);
    histogram.Add(std::vector<int64_t>{size});
    ASSERT_LE(histogram.distinct(), SizeHistogram::kMaxDistinct);
  }
  double rounded = 0;
  const auto seen = histogram.Snapshot();
  for (const WeightedSizes& one : seen) rounded += one.weight * one.sizes[0];
  EXPECT_EQ(histogram.total_weight(), 200000);
  EXPECT_GE(seen.back().sizes[0], largest);
  EXPECT_GE(rounded, total);
  EXPECT_LE(rounded, total * 1.01);
}

TEST(SizeHistogramTest, UpToTheLimitNothingIsRounded) {
  SizeHistogram histogram;
  for (int64_t i = 0; i < 4096; ++i) histogram.Add(std::vector<int64_t>{100003 + 7 * i});
  const auto seen = histogram.Snapshot();
  ASSERT_EQ(seen.size(), 4096u);
  EXPECT_EQ(seen[0].sizes[0], 100003);
  EXPECT_EQ(seen[4095].sizes[0], 100003 + 7 * 4095);
}

TEST(DistributionDistanceTest, IsTheLargestGapOfCumulativeShares) {
  const std::vector<WeightedSize> a = {{10, 1}, {20, 1}};
  EXPECT_EQ(DistributionDistance(a, a), 0);
  EXPECT_EQ(DistributionDistance(a, std::vector<WeightedSize>{{10, 4}, {20, 4}}), 0);
  EXPECT_EQ(DistributionDistance(a, std::vector<WeightedSize>{{30, 4}}), 1);
  EXPECT_EQ(DistributionDistance(a, std::vector<WeightedSize>{{15, 2}}), 0.5);
  EXPECT_EQ(DistributionDistance(a, {}), 0);
}

}  // namespace
}  // namespace reprise
