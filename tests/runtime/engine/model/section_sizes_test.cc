// To which sizes sections after a cut are rounded up.
#include "runtime/engine/model/section_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace reprise {
namespace {

using testing::ElementsAre;

TEST(SectionSizesTest, BucketsArePowersOfTwoAndHalfWayBetween) {
  EXPECT_EQ(SectionBucket(1), 16);
  EXPECT_EQ(SectionBucket(16), 16);
  EXPECT_EQ(SectionBucket(17), 24);
  EXPECT_EQ(SectionBucket(25), 32);
  EXPECT_EQ(SectionBucket(300), 384);
  EXPECT_EQ(SectionBucket(385), 512);
}

TEST(SectionSizesTest, SidesOfPlanesAreMultiplesOfTheStepAndOfAnEighth) {
  EXPECT_EQ(PlaneBucket(7, 1), 7);
  EXPECT_EQ(PlaneBucket(100, 1), 104);
  EXPECT_EQ(PlaneBucket(800, 32), 832);
  EXPECT_EQ(PlaneBucket(1344, 32), 1408);
  EXPECT_EQ(PlaneBucket(96, 32), 96);
}

TEST(SectionSizesTest, OneSizeOfAPlaneServesThoseBelowItWithinABound) {
  SectionSizes sizes;
  const std::vector<SectionSizes::Axis> axes(2, {.padded = true, .largest = 2048, .step = 32});
  EXPECT_THAT(sizes.RoundUp({800, 1344}, axes, /*of_plane=*/true), ElementsAre(832, 1408));
  EXPECT_THAT(sizes.RoundUp({800, 1088}, axes, true), ElementsAre(832, 1408));
  EXPECT_THAT(sizes.RoundUp({832, 1408}, axes, true), ElementsAre(832, 1408));
  EXPECT_THAT(sizes.RoundUp({320, 320}, axes, true), ElementsAre(320, 320)) << "far smaller";
  EXPECT_THAT(sizes.RoundUp({2048, 2048}, axes, true), ElementsAre(2048, 2048));
}

TEST(SectionSizesTest, PicturesOfManyShapesHaveFewSizes) {
  SectionSizes sizes;
  const std::vector<SectionSizes::Axis> axes(2, {.padded = true, .largest = 2048, .step = 32});
  std::set<std::vector<int64_t>> given;
  for (int64_t i = 0; i < 60; ++i) {
    // A shorter side of 800, and a longer one of 800 to 1600, at most 1344, either way.
    const int64_t longer = 800 + i * 37 % 60 * 800 / 60;
    const int64_t shorter = longer > 1344 ? 800 * 1344 / longer : 800;
    const auto up = [](int64_t size) { return (size + 31) / 32 * 32; };
    std::vector<int64_t> side = {up(shorter), up(std::min<int64_t>(longer, 1344))};
    if (i % 2 == 1) std::swap(side[0], side[1]);
    const std::vector<int64_t> rounded = sizes.RoundUp(side, axes, true);
    EXPECT_GE(rounded[0], side[0]);
    EXPECT_GE(rounded[1], side[1]);
    EXPECT_LE(4 * rounded[0] * rounded[1], 9 * side[0] * side[1]);
    given.insert(rounded);
  }
  EXPECT_LE(given.size(), 9u);
}

}  // namespace
}  // namespace reprise
