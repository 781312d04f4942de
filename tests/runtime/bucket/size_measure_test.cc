#include "runtime/bucket/size_measure.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace reprise {
namespace {

TEST(SizeMeasureTest, AxesOfOneInputMultiply) {
  const SizeMeasure measure(3, {{0, 1, 2}, {0, 1}, {1}});
  EXPECT_EQ(measure.Elements({2, 3, 5}), 30);
  EXPECT_EQ(SizeMeasure().Elements({2, 3, 5}), 30);
  EXPECT_EQ(SizeMeasure().Elements({}), 1);
}

TEST(SizeMeasureTest, InputsOfDifferentAxesAddUp) {
  const SizeMeasure measure(3, {{0, 1}, {1, 0}, {0, 2}, {0}});
  EXPECT_EQ(measure.Elements({2, 30, 5}), 60 + 10);
  EXPECT_EQ(measure.Elements({2, 30, 0}), 60 + 2);  // An empty dim leaves the others to count.
  EXPECT_EQ(SizeMeasure(3, {{0, 1}}).Elements({2, 30, 5}), 60 + 5);  // Axis 2 is in no input.
}

TEST(SizeMeasureTest, OrderAndRepetitionDoNotMatter) {
  EXPECT_EQ(SizeMeasure(3, {{0, 1}, {2, 0, 2}}), SizeMeasure(3, {{0, 2}, {1, 0}, {1}, {0, 2}}));
}

TEST(SizeMeasureTest, OfSomeAxes) {
  const SizeMeasure measure(4, {{0, 1}, {0, 2, 3}});
  EXPECT_EQ(measure.Of({1, 3}).Elements({7, 5}), 7 + 5);
  EXPECT_EQ(measure.Of({3, 2}).Elements({7, 5}), 35);
  EXPECT_EQ(measure.Of({0}).Elements({9}), 9);
  EXPECT_EQ(measure.Of({}).Elements({}), 1);
  EXPECT_EQ(SizeMeasure().Of({0, 1}).Elements({3, 4}), 12);
}

TEST(SizeMeasureTest, ManyAxesSaturate) {
  const std::vector<int64_t> sizes(64, 1 << 20);
  EXPECT_EQ(SizeMeasure().Elements(sizes), std::numeric_limits<int64_t>::max());
  std::vector<std::vector<size_t>> alone;
  for (size_t i = 0; i < sizes.size(); ++i) alone.push_back({i});
  EXPECT_EQ(SizeMeasure(64, alone).Elements(sizes), int64_t{64} << 20);
  const std::vector<int64_t> huge(3, int64_t{1} << 62);
  EXPECT_EQ(SizeMeasure(3, {{0}, {1}, {2}}).Elements(huge), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace reprise
