#include "runtime/bucket/grid_solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "runtime/bucket/solver.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using Sets = std::vector<std::vector<int64_t>>;

// Returns every set of boundaries of an axis that holds its largest size, with at most `most` of
// them.
Sets AllSets(const std::vector<WeightedSize>& along, int most) {
  Sets sets;
  for (uint32_t chosen = 0; chosen < (1u << (along.size() - 1)); ++chosen) {
    std::vector<int64_t> set;
    for (size_t i = 0; i < along.size(); ++i) {
      if (i + 1 == along.size() || (chosen >> i & 1) != 0) set.push_back(along[i].size);
    }
    if (static_cast<int>(set.size()) <= most) sets.push_back(set);
  }
  return sets;
}

double CheapestOfAllGrids(const std::vector<WeightedSizes>& seen, const BindingCost& cost,
                          const GridOptions& options) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& first : AllSets(AlongAxis(seen, 0), options.most[0])) {
    for (const auto& second : AllSets(AlongAxis(seen, 1), options.most[1])) {
      const auto buckets = static_cast<int64_t>(first.size() * second.size());
      if (options.most_buckets > 0 && buckets > options.most_buckets) continue;
      best = std::min(best, GridCost(seen, Sets{first, second}, cost, options));
    }
  }
  return best;
}

std::vector<WeightedSizes> RandomBatches(std::mt19937& random, int rows, int lengths) {
  SizeHistogram histogram;
  const int count = 3 + random() % 20;
  for (int i = 0; i < count; ++i) {
    const std::vector<int64_t> sizes = {1 + static_cast<int64_t>(random() % rows),
                                        (1 + static_cast<int64_t>(random() % lengths)) * 7};
    histogram.Add(sizes, 1 + random() % 5);
  }
  return histogram.Snapshot();
}

TEST(GridSolverTest, NoGridIsCheaperOverBatchAndLength) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const std::vector<WeightedSizes> seen = RandomBatches(random, 6, 6);
    const double skipped = (random() % 3) * 0.5;  // how much of dead rows is computed
    const double a = random() % 200;
    const BindingCost cost = [=](absl::Span<const int64_t> sizes,
                                 absl::Span<const int64_t> binding) {
      const double rows = sizes[0] + skipped * (binding[0] - sizes[0]);
      return a + rows * binding[1] * (1 + 0.01 * binding[1]);
    };
    GridOptions options = {.most = {3, 3}, .price = static_cast<double>(random() % 2 * 40)};
    if (random() % 2 == 0) options.most_buckets = 4;
    if (random() % 2 == 0) {
      options.batch_axis = 0;
      options.max_product = 60 + random() % 100;
    }
    const Grid solved = SolveGrid(seen, cost, options);
    const double expected = CheapestOfAllGrids(seen, cost, options);
    EXPECT_NEAR(solved.cost, expected, 1e-9 * expected) << "round " << round;
    EXPECT_NEAR(GridCost(seen, solved.boundaries, cost, options), solved.cost, 1e-9 * expected);
    if (options.most_buckets > 0) {
      EXPECT_LE(solved.boundaries[0].size() * solved.boundaries[1].size(), 4u);
    }
  }
}

TEST(GridSolverTest, OneAxisIsWhatTheLineSolverFinds) {
  std::mt19937 random(5);
  SizeHistogram histogram;
  for (int i = 0; i < 300; ++i) {
    histogram.Add(std::vector<int64_t>{1 + static_cast<int64_t>(random() % 97)});
  }
  const auto seen = histogram.Snapshot();
  const auto cost = [](absl::Span<const int64_t>, absl::Span<const int64_t> binding) {
    return static_cast<double>(binding[0]);
  };
  const Grid grid = SolveGrid(seen, cost, {.most = {5}});
  const Boundaries line = SolveBoundaries(AlongAxis(seen, 0), 5,
                                          [](int64_t size) { return static_cast<double>(size); });
  EXPECT_DOUBLE_EQ(grid.cost, line.cost);
}

TEST(GridSolverTest, ABatchBeyondTheProductLimitRunsAsSeveralReplays) {
  const std::vector<WeightedSizes> seen = {{{5, 100}, 1.0}};
  const auto cost = [](absl::Span<const int64_t> sizes, absl::Span<const int64_t> binding) {
    return static_cast<double>(10 + sizes[0] * binding[1]);
  };
  const GridOptions options = {.most = {3, 1}, .batch_axis = 0, .max_product = 200};
  // With 100 the limit allows 2 rows: 2 + 2 + 1.
  EXPECT_EQ(GridCost(seen, Sets{{1, 2, 8}, {100}}, cost, options), 3 * 10 + 500);
}

TEST(GridSolverTest, FixedAxesStayAndTheOthersAreFoundBesideThem) {
  const std::vector<WeightedSizes> seen = {{{1, 30}, 5}, {{3, 31}, 5}, {{4, 90}, 5}};
  const auto cost = [](absl::Span<const int64_t> sizes, absl::Span<const int64_t> binding) {
    return static_cast<double>(sizes[0] * binding[1]);
  };
  const Grid grid = SolveGrid(seen, cost, {.most = {8, 2}, .fixed = {{1, 2, 4, 8}, {}}});
  EXPECT_THAT(grid.boundaries[0], ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(grid.boundaries[1], ElementsAre(31, 90));
}

// Images: two large axes, neither of which can be tried set by set.
TEST(GridSolverTest, HeightsAndWidthsGetTheirClusters) {
  SizeHistogram histogram;
  std::mt19937 random(11);
  for (int i = 0; i < 400; ++i) {
    const bool wide = random() % 2 == 0;
    const int64_t spread = random() % 20;
    histogram.Add(wide ? std::vector<int64_t>{200 + spread, 300 + spread}
                       : std::vector<int64_t>{400 + spread, 600 + spread});
  }
  const auto cost = [](absl::Span<const int64_t>, absl::Span<const int64_t> binding) {
    return static_cast<double>(binding[0] * binding[1]);
  };
  const Grid grid = SolveGrid(histogram.Snapshot(), cost, {.most = {2, 2}});
  EXPECT_THAT(grid.boundaries[0], ElementsAre(219, 419));
  EXPECT_THAT(grid.boundaries[1], ElementsAre(319, 619));
}

}  // namespace
}  // namespace reprise
