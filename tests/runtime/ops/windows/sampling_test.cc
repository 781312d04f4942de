// GridSample, RoiAlign and LRN: cases that the conformance suite does not reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Places that lie a whole number of periods apart are one, also where none of them is near.
TEST(GridSampleTest, PlacesFarAwayAreReflectedOrTheBorder) {
  const Tensor x = F32({1, 1, 1, 4}, {1, 2, 3, 4});
  const auto sampled = [&](const std::string& outside, float place) {
    return Numbers(RunOp("GridSample", {x, F32({1, 1, 1, 2}, {place, 0})},
                         {{"padding_mode", outside}, {"mode", std::string("cubic")}}))[0];
  };
  EXPECT_NEAR(sampled("reflection", 0.3f + 4096), sampled("reflection", 0.3f), 1e-2);
  EXPECT_GT(sampled("reflection", 1e30f), 0.5);
  EXPECT_EQ(sampled("border", 1e30f), 4);
  EXPECT_EQ(sampled("border", -1e30f), 1);
}

// The element is chosen before the place is reflected.
TEST(GridSampleTest, TheNearestIsReflected) {
  const Tensor x = F32({1, 1, 1, 4}, {1, 2, 3, 4});
  const Tensor grid = F32({1, 1, 2, 2}, {2.5f, 0, -2.5f, 0});  // places 6.5 and -3.5
  EXPECT_THAT(Numbers(RunOp(
                  "GridSample", {x, grid},
                  {{"padding_mode", std::string("reflection")}, {"mode", std::string("nearest")}})),
              ElementsAre(2, 4));
}

// Positions are rounded as the grid's dtype has them: just left of the middle is the middle in
// float32, where an even element is the nearest, and not in float64.
TEST(GridSampleTest, TheDtypeOfTheGridDecidesTies) {
  const Tensor x = F32({1, 1, 1, 4}, {0, 1, 2, 3});
  const double place = -1e-9;
  const auto sampled = [&](const Tensor& grid) {
    return Numbers(RunOp("GridSample", {x, grid},
                         {{"mode", std::string("nearest")}, {"align_corners", int64_t{1}}}));
  };
  EXPECT_THAT(sampled(F32({1, 1, 1, 2}, {static_cast<float>(place), 0})), ElementsAre(2));
  EXPECT_THAT(sampled(Tensor::FromVector<double>(DType::kFloat64, {1, 1, 1, 2}, {place, 0})),
              ElementsAre(1));
}

TEST(GridSampleTest, PlacesThatAreNotFiniteReadNothingOutside) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = F32({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor grid = F32({1, 1, 4, 2}, {nan, 0, infinity, 0, -1e30f, 1e30f, -0.5f, -0.5f});
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const char* mode : {"linear", "nearest", "cubic"}) {
      const std::vector<double> numbers =
          Numbers(RunOp("GridSample", {x, grid},
                        {{"padding_mode", std::string(padding)}, {"mode", std::string(mode)}}));
      ASSERT_EQ(numbers.size(), 4u) << padding << " " << mode;
      EXPECT_TRUE(std::isfinite(numbers[3]));
    }
  }
  // No number is at the first border: between the first element and nothing, here of two rows.
  EXPECT_THAT(Numbers(RunOp("GridSample", {x, grid})), ElementsAre(1, 0, 0, 1));
}

TEST(GridSampleTest, WhatDoesNotFitIsRefused) {
  const Tensor x = F32({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(ErrorOf(RunOp("GridSample", {x, F32({1, 1, 1, 3}, {0, 0, 0})})),
              HasSubstr("a grid [1, 1, 1, 3] does not fit"));
  EXPECT_THAT(ErrorOf(RunOp("GridSample", {x, F32({1, 1, 1, 2}, {0, 0})},
                            {{"padding_mode", std::string("wrap")}})),
              HasSubstr("no padding_mode 'wrap'"));
}

TEST(RoiAlignTest, AnyRegionIsAnswered) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = F32({1, 1, 2, 2}, {1, 1, 1, 1});
  const Tensor regions = F32({4, 4}, {0, 0, 2, 2, nan, 0, 1, 1, 0, 0, 1e30f, 1e30f, 2, 2, 0, 0});
  const std::vector<double> numbers =
      Numbers(RunOp("RoiAlign", {x, regions, I64({4}, {0, 0, 0, 0})}));
  ASSERT_EQ(numbers.size(), 4u);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[1], 0);
  EXPECT_NEAR(numbers[2], 0, 1e-6);
  EXPECT_EQ(numbers[3], 0);
}

// Samples outside are zeros, which the largest of negative elements does not pass; a region far
// larger than the image costs little more than the image.
TEST(RoiAlignTest, SamplesOutsideAreZeros) {
  const Tensor x = F32({1, 1, 2, 2}, {-4, -4, -4, -4});
  const Tensor inside = F32({1, 4}, {0.5f, 0.5f, 1.5f, 1.5f});
  const Tensor half = F32({1, 4}, {-7.5f, 0.5f, 8.5f, 1.5f});
  const auto pooled = [&](const Tensor& region, const char* mode) {
    return Numbers(RunOp("RoiAlign", {x, region, I64({1}, {0})},
                         {{"mode", std::string(mode)}, {"sampling_ratio", int64_t{16}}}));
  };
  EXPECT_THAT(pooled(inside, "avg"), ElementsAre(-4));
  EXPECT_THAT(pooled(inside, "max"), ElementsAre(testing::Lt(0)));
  // Columns -7.5, -6.5, ... 7.5: three of 16, at -0.5, 0.5 and 1.5, lie inside.
  EXPECT_THAT(pooled(half, "avg"), ElementsAre(-0.75));
  EXPECT_THAT(pooled(half, "max"), ElementsAre(0));
}

// Nearly all of its samples are outside, and none of those is visited.
TEST(RoiAlignTest, RegionsFarLargerThanTheImageAreAnswered) {
  const Tensor x = F32({1, 64, 4, 4}, std::vector<float>(64 * 16, 1));
  const Tensor region = F32({1, 4}, {-2e5f, -2e5f, 2e5f, 2e5f});
  const std::vector<double> numbers =
      Numbers(RunOp("RoiAlign", {x, region, I64({1}, {0})},
                    {{"output_height", int64_t{7}}, {"output_width", int64_t{7}}}));
  ASSERT_EQ(numbers.size(), 64u * 49);
  EXPECT_THAT(numbers, testing::Each(testing::AllOf(testing::Ge(0), testing::Le(1))));
}

TEST(RoiAlignTest, AnElementThatIsNotThereIsNamed) {
  const Tensor x = F32({1, 1, 1, 1}, {1});
  EXPECT_THAT(ErrorOf(RunOp("RoiAlign", {x, F32({1, 4}, {0, 0, 1, 1}), I64({1}, {3})})),
              HasSubstr("3"));
}

TEST(LrnTest, SumsReachOverTheChannelsThatThereAre) {
  const Tensor x = F32({1, 3, 1}, {1, 2, 3});
  const Attributes attributes = {
      {"size", int64_t{2}}, {"alpha", 2.0f}, {"beta", 1.0f}, {"bias", 1.0f}};
  EXPECT_THAT(Numbers(RunOp("LRN", {x}, attributes)),
              ElementsAre(testing::DoubleNear(1.0 / 6, 1e-6), testing::DoubleNear(2.0 / 14, 1e-6),
                          testing::DoubleNear(3.0 / 10, 1e-6)));
  EXPECT_THAT(ErrorOf(RunOp("LRN", {x})), HasSubstr("sums of 0 channels"));
}

TEST(BitTest, ShiftsByAllBitsLeaveNothing) {
  EXPECT_THAT(Numbers(RunOp("BitShift", {U8({4}, {3, 3, 3, 200}), U8({4}, {1, 7, 8, 255})},
                            {{"direction", std::string("LEFT")}})),
              ElementsAre(6, 128, 0, 0));
  EXPECT_THAT(Numbers(RunOp("BitShift", {U8({3}, {200, 200, 200}), U8({3}, {3, 8, 255})},
                            {{"direction", std::string("RIGHT")}})),
              ElementsAre(25, 0, 0));
  EXPECT_THAT(ErrorOf(RunOp("BitShift", {U8({1}, {1}), U8({1}, {1})})),
              HasSubstr("no direction ''"));
}

}  // namespace
}  // namespace reprise
