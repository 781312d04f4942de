#include "runtime/bucket/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace reprise {
namespace {

using ::testing::ElementsAre;

double Elements(int64_t size) { return static_cast<double>(size); }

TEST(PlanTest, BatchesArePaddedToTheirLongestAndTheLastOneMayBeSmaller) {
  const std::vector<int64_t> lengths = {3, 10, 7, 7, 5};
  const PlannedLengths planned = PlanLengths(lengths, 2);
  EXPECT_EQ(planned.valid_elements, 32);
  EXPECT_EQ(planned.rows, 5);
  ASSERT_EQ(planned.distinct(), 3u);
  EXPECT_EQ(planned.longest[0].size, 5);
  EXPECT_EQ(planned.longest[0].weight, 1);
  EXPECT_EQ(planned.longest[2].size, 10);
  EXPECT_EQ(planned.longest[2].weight, 2);
  EXPECT_EQ(planned.replays[2].weight, 1);
  const Judgement judged = Judge(planned, std::vector<int64_t>{7, 12}, Elements);
  EXPECT_EQ(judged.padded, 2 * 12 + 2 * 7 + 7 - 32);
  EXPECT_EQ(judged.captures, 2);
}

TEST(PlanTest, LengthsBeyondTheLastBucketRunExactAndAreNamed) {
  const std::vector<int64_t> lengths = {4, 8, 9, 10};
  const Judgement judged = Judge(PlanLengths(lengths, 1), std::vector<int64_t>{8}, Elements);
  EXPECT_EQ(judged.padded, 4);
  EXPECT_EQ(judged.captures, 3);
  EXPECT_EQ(judged.beyond, 0.5);
}

TEST(PlanTest, TheSolverIsNeverWorseThanAnyOtherStrategy) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> length(std::log(115.0), 0.4);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 5000; ++i) {
    lengths.push_back(std::clamp<int64_t>(std::llround(length(random)), 1, 867));
  }
  for (int64_t batch : {1, 7}) {
    const PlanTable table = MakePlan(PlanLengths(lengths, batch), 16, Elements);
    ASSERT_EQ(table.rows.size(), 16u);
    for (int k = 1; k <= 16; ++k) {
      const double best = table.at(k, Strategy::kSolver).time;
      for (int s = 0; s < kNumStrategies; ++s) {
        const Judgement& other = table.at(k, static_cast<Strategy>(s));
        EXPECT_LE(best, other.time * (1 + 1e-12)) << k << " " << s;
        EXPECT_EQ(other.beyond, 0);
        EXPECT_LE(other.boundaries.size(), static_cast<size_t>(k));
      }
      if (k == 1) continue;
      EXPECT_LT(best, table.at(k - 1, Strategy::kSolver).time);
    }
    // Percentiles leave a good part on the table.
    EXPECT_LT(table.at(5, Strategy::kSolver).padded,
              0.95 * table.at(5, Strategy::kPercentile).padded);
  }
}

TEST(PlanTest, CountsAreLengthsWithoutTheirOrder) {
  const PlannedLengths planned = PlanCounts(std::vector<WeightedSize>{{10, 3}, {20, 1.5}});
  EXPECT_EQ(planned.valid_elements, 60);
  EXPECT_THAT(MakePlan(planned, 2, Elements).at(2, Strategy::kSolver).boundaries,
              ElementsAre(10, 20));
}

}  // namespace
}  // namespace reprise
