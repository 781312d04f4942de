#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kMap = F32({1, 2, 3}, {1, 2, 3, 4, 5, 6});
const Attributes kAligned = {{"align_corners", int64_t{1}}};

TEST(AffineGridTest, PlacesLieBetweenOuterSidesOrCentres) {
  const auto grid = RunOp("AffineGrid", {kMap, I64({4}, {1, 1, 2, 3})}, kAligned);
  EXPECT_EQ(ShapeOf(grid), Shape({1, 2, 3, 2}));
  EXPECT_THAT(Numbers(grid), ElementsAre(0, -3, 1, 1, 2, 5, 4, 7, 5, 11, 6, 15));
  const std::vector<double> inside = Numbers(RunOp("AffineGrid", {kMap, I64({4}, {1, 1, 2, 3})}));
  ASSERT_EQ(inside.size(), 12u);
  EXPECT_NEAR(inside[0], 4.0 / 3, 1e-6);  // place (-2/3, -1/2)
  EXPECT_NEAR(inside[1], 5.0 / 6, 1e-6);
  EXPECT_NEAR(inside[11], 67.0 / 6, 1e-5);
}

// An identity over a volume: the places themselves, last dim first.
TEST(AffineGridTest, ThreeDimsAndOneMapARow) {
  std::vector<float> maps = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0,  //
                             0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 7};
  const auto grid =
      RunOp("AffineGrid", {F32({2, 3, 4}, maps), I64({5}, {2, 1, 1, 1, 2})}, kAligned);
  EXPECT_EQ(ShapeOf(grid), Shape({2, 1, 1, 2, 3}));
  EXPECT_THAT(Numbers(grid), ElementsAre(-1, -1, -1, 1, -1, -1, 9, 8, 7, 9, 8, 7));
}

TEST(AffineGridTest, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(ErrorOf(RunOp("AffineGrid", {kMap, I64({4}, {2, 1, 2, 3})})),
              HasSubstr("maps [1, 2, 3] do not fit images [2, 1, 2, 3]"));
  EXPECT_THAT(ErrorOf(RunOp("AffineGrid", {kMap, I64({3}, {1, 1, 2})})), HasSubstr("do not fit"));
  EXPECT_THAT(ErrorOf(RunOp("AffineGrid", {kMap, I64({4}, {1, 1, -2, 3})})), HasSubstr("-2"));
  EXPECT_EQ(ShapeOf(RunOp("AffineGrid", {kMap, I64({4}, {1, 1, 0, 3})})), Shape({1, 0, 3, 2}));
}

}  // namespace
}  // namespace reprise
