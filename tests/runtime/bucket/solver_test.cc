#include "runtime/bucket/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

double SizeAsCost(int64_t size) { return static_cast<double>(size); }

// Returns the cheapest of every set of at most `most` boundaries that holds the largest size.
double CheapestOfAllSets(const std::vector<WeightedSize>& seen, int most, const BoundaryCost& cost,
                         const BoundaryCost& price) {
  double best = std::numeric_limits<double>::infinity();
  const size_t n = seen.size();
  for (uint32_t chosen = 0; chosen < (1u << (n - 1)); ++chosen) {
    std::vector<int64_t> boundaries;
    double prices = 0;
    for (size_t i = 0; i < n; ++i) {
      if (i + 1 < n && (chosen >> i & 1) == 0) continue;
      boundaries.push_back(seen[i].size);
      if (price) prices += price(seen[i].size);
    }
    if (static_cast<int>(boundaries.size()) > most) continue;
    best = std::min(best, CostOf(seen, boundaries, cost) + prices);
  }
  return best;
}

std::vector<WeightedSize> RandomSizes(std::mt19937& random, int count) {
  std::vector<WeightedSize> seen;
  int64_t size = 0;
  for (int i = 0; i < count; ++i) {
    size += 1 + random() % 40;
    seen.push_back({size, 0.25 + random() % 16});
  }
  return seen;
}

TEST(SolverTest, NoSetOfBoundariesIsCheaper) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::vector<WeightedSize> seen = RandomSizes(random, 1 + random() % 11);
    // Costs of time: an overhead, a linear and a quadratic part.
    const double a = random() % 100, b = 1 + random() % 10, c = (random() % 10) * 0.01;
    const BoundaryCost cost = [=](int64_t s) { return a + b * s + c * s * s; };
    const double p = random() % 3 * 50.0;
    const BoundaryCost price = [=](int64_t s) { return p + 0.1 * s; };
    const std::vector<Boundaries> each = SolveEach(seen, 5, cost, price);
    ASSERT_EQ(each.size(), 5u);
    for (int k = 1; k <= 5; ++k) {
      const Boundaries& solved = each[k - 1];
      const double expected = CheapestOfAllSets(seen, k, cost, price);
      EXPECT_NEAR(solved.cost, expected, 1e-9 * expected);
      // The boundaries cost as much as the solver says.
      double own = CostOf(seen, solved.sizes, cost);
      for (int64_t size : solved.sizes) own += price(size);
      EXPECT_NEAR(own, solved.cost, 1e-9 * expected);
      EXPECT_LE(static_cast<int>(solved.sizes.size()), k);
      EXPECT_EQ(solved.sizes.back(), seen.back().size);
    }
  }
}

TEST(SolverTest, CostsThatFallAreSolvedToo) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    const std::vector<WeightedSize> seen = RandomSizes(random, 1 + random() % 10);
    std::vector<double> costs(500);
    for (double& one : costs) one = 1 + random() % 100;
    const BoundaryCost cost = [&](int64_t s) { return costs[s % costs.size()]; };
    const double expected = CheapestOfAllSets(seen, 3, cost, {});
    EXPECT_NEAR(SolveBoundaries(seen, 3, cost).cost, expected, 1e-9 * expected);
  }
}

TEST(SolverTest, LumpsGetABoundaryEach) {
  const std::vector<WeightedSize> seen = {{30, 1}, {32, 50}, {100, 2}, {101, 70}, {300, 10}};
  EXPECT_THAT(SolveBoundaries(seen, 3, SizeAsCost).sizes, ElementsAre(32, 101, 300));
  EXPECT_THAT(SolveBoundaries(seen, 1, SizeAsCost).sizes, ElementsAre(300));
  EXPECT_THAT(SolveBoundaries(seen, 16, SizeAsCost).sizes, ElementsAre(30, 32, 100, 101, 300));
}

TEST(SolverTest, ABoundaryThatCostsMoreThanItSavesIsLeftOut) {
  const std::vector<WeightedSize> seen = {{10, 1}, {20, 100}, {40, 100}};
  const BoundaryCost price = [](int64_t) { return 50.0; };
  EXPECT_THAT(SolveBoundaries(seen, 3, SizeAsCost, price).sizes, ElementsAre(20, 40));
}

TEST(SolverTest, NothingSeenNeedsNoBoundary) {
  const Boundaries solved = SolveBoundaries({}, 8, SizeAsCost);
  EXPECT_THAT(solved.sizes, IsEmpty());
  EXPECT_EQ(solved.cost, 0);
}

TEST(SolverTest, SizesAboveAllBoundariesCostTheirOwn) {
  const std::vector<WeightedSize> seen = {{5, 2}, {10, 1}, {50, 3}};
  EXPECT_EQ(CostOf(seen, std::vector<int64_t>{8}, SizeAsCost), 2 * 8 + 10 + 3 * 50);
  EXPECT_EQ(CostOf(seen, {}, SizeAsCost), 2 * 5 + 10 + 3 * 50);
}

// Tokens of packed batches are sizes as any other: budgets of a packed recipe are found with the
// same program.
TEST(SolverTest, TokenBudgetsOfPackedBatches) {
  std::vector<int64_t> totals;
  for (int64_t i = 0; i < 300; ++i) totals.push_back(480 + i % 16);
  for (int64_t i = 0; i < 20; ++i) totals.push_back(60 + i % 3);
  const Boundaries solved = SolveBoundaries(CountSizes(totals), 2, SizeAsCost);
  EXPECT_THAT(solved.sizes, ElementsAre(62, 495));
}

}  // namespace
}  // namespace reprise
