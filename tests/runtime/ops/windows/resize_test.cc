#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const Tensor kEnds = F32({1, 1, 2}, {1, 3});
const Tensor kTwice = F32({3}, {1, 1, 2});

absl::StatusOr<std::vector<Tensor>> Resize(const std::string& mode, const std::string& coordinates,
                                           const Tensor& scales = kTwice) {
  return RunOp("Resize", {kEnds, std::nullopt, scales},
               {{"mode", mode}, {"coordinate_transformation_mode", coordinates}});
}

TEST(ResizeTest, LinearAtTheUsualCoordinates) {
  EXPECT_THAT(Numbers(Resize("linear", "half_pixel")), ElementsAre(1, 1.5, 2.5, 3));
  EXPECT_THAT(Numbers(Resize("linear", "asymmetric")), ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(Numbers(Resize("linear", "align_corners")),
              Pointwise(DoubleNear(1e-6), std::vector<double>{1, 5.0 / 3, 7.0 / 3, 3}));
}

TEST(ResizeTest, ADimMayBeLongerThanTheTapsAtATime) {
  constexpr int64_t kLong = 60'001;
  const std::vector<double> numbers = Numbers(RunOp(
      "Resize",
      {F32({2, 1, 3}, {1, 2, 3, 4, 5, 6}), std::nullopt, std::nullopt, I64({3}, {2, 1, kLong})},
      {{"mode", std::string("nearest")},
       {"coordinate_transformation_mode", std::string("asymmetric")},
       {"nearest_mode", std::string("floor")}}));
  ASSERT_EQ(numbers.size(), 2 * kLong);
  for (int64_t i = 0; i < kLong; ++i) {
    const double at = std::floor(static_cast<float>(i) / (static_cast<float>(kLong) / 3));
    ASSERT_EQ(numbers[i], std::min(at, 2.0) + 1) << i;
    ASSERT_EQ(numbers[kLong + i], std::min(at, 2.0) + 4) << i;
  }
}

TEST(ResizeTest, ACropByWhatIsNoNumberIsOutside) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float edge : {nan, infinity, -infinity, 1e30f}) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      const std::vector<double> numbers =
          Numbers(RunOp("Resize", {kEnds, F32({6}, {0, 0, edge, 1, 1, edge}), kTwice},
                        {{"mode", std::string(mode)},
                         {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                         {"extrapolation_value", 7.0f}}));
      EXPECT_THAT(numbers, ElementsAre(7, 7, 7, 7)) << mode << " " << edge;
    }
  }
}

TEST(ResizeTest, SamplesBetweenIntegersAreCutOff) {
  const auto linear = [](const Tensor& x) {
    return Numbers(RunOp("Resize", {x, std::nullopt, kTwice}, {{"mode", std::string("linear")}}));
  };
  // 10.75 and 12.25
  EXPECT_THAT(linear(U8({1, 1, 2}, {10, 13})), ElementsAre(10, 10, 12, 13));
  EXPECT_THAT(linear(I8({1, 1, 2}, {10, 13})), ElementsAre(10, 10, 12, 13));
  EXPECT_THAT(linear(I32({1, 1, 2}, {10, 13})), ElementsAre(10, 10, 12, 13));
  EXPECT_THAT(linear(I8({1, 1, 2}, {-10, -13})), ElementsAre(-10, -10, -12, -13));
  // Exact sums stay exact, whatever the weights are rounded to.
  EXPECT_THAT(
      Numbers(RunOp("Resize",
                    {U8({1, 1, 2}, {200, 200}), std::nullopt, std::nullopt, I64({3}, {1, 1, 7})},
                    {{"mode", std::string("linear")}})),
      ElementsAre(200, 200, 200, 200, 200, 200, 200));
}

TEST(ResizeTest, NearestAndCubic) {
  EXPECT_THAT(Numbers(Resize("nearest", "half_pixel")), ElementsAre(1, 1, 3, 3));
  EXPECT_THAT(Numbers(Resize("cubic", "asymmetric")), ElementsAre(1, 2, 3, 3.1875));
}

TEST(ResizeTest, SizesOfChosenAxesWithTheRatioKept) {
  const Tensor x = F32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const OptionalTensors inputs = {x, std::nullopt, std::nullopt, I64({2}, {4, 4})};
  Attributes attributes = {{"axes", std::vector<int64_t>{2, 3}}};
  EXPECT_EQ(ShapeOf(RunOp("Resize", inputs, attributes)), (Shape{1, 1, 4, 4}));
  attributes.Set("keep_aspect_ratio_policy", std::string("not_larger"));
  EXPECT_EQ(ShapeOf(RunOp("Resize", inputs, attributes)), (Shape{1, 1, 2, 4}));
  attributes.Set("keep_aspect_ratio_policy", std::string("not_smaller"));
  EXPECT_EQ(ShapeOf(RunOp("Resize", inputs, attributes)), (Shape{1, 1, 4, 8}));
}

TEST(ResizeTest, EmptyListsAreLeftOutOperands) {
  const Tensor empty = F32({0}, {});
  EXPECT_EQ(ShapeOf(RunOp("Resize", {kEnds, empty, empty, I64({3}, {1, 1, 6})})), (Shape{1, 1, 6}));
}

TEST(ResizeTest, WhatWeLackOrDoesNotFitIsNamed) {
  EXPECT_THAT(ErrorOf(Resize("area", "half_pixel")), HasSubstr("mode 'area'"));
  EXPECT_THAT(ErrorOf(Resize("linear", "upside_down")), HasSubstr("'upside_down'"));
  EXPECT_THAT(ErrorOf(Resize("linear", "half_pixel", F32({2}, {1, 2}))),
              HasSubstr("scales has 2 elements instead of 3"));
  EXPECT_THAT(ErrorOf(Resize("linear", "half_pixel", F32({3}, {1, 1, -2}))),
              HasSubstr("dim 2 of 2 cannot be made"));
  EXPECT_THAT(ErrorOf(RunOp("Resize", {kEnds})), HasSubstr("either scales or sizes"));
}

TEST(RearrangeTest, DepthToSpaceAndBack) {
  const Tensor deep = F32({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto wide = RunOp("DepthToSpace", {deep}, {{"blocksize", int64_t{2}}});
  EXPECT_EQ(ShapeOf(wide), (Shape{1, 2, 2, 2}));
  EXPECT_THAT(Numbers(wide), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(Numbers(RunOp("SpaceToDepth", {wide->front()}, {{"blocksize", int64_t{2}}})),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Numbers(RunOp("DepthToSpace", {deep},
                            {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}})),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(RearrangeTest, RowsAreReversedUpToTheirLengths) {
  const Tensor x = F32({3, 2}, {1, 10, 2, 20, 3, 30});  // [time, batch]
  EXPECT_THAT(Numbers(RunOp("ReverseSequence", {x, I64({2}, {3, 2})})),
              ElementsAre(3, 20, 2, 10, 1, 30));
  EXPECT_THAT(Numbers(RunOp("ReverseSequence", {F32({2, 3}, {1, 2, 3, 4, 5, 6}), I64({2}, {2, 1})},
                            {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}})),
              ElementsAre(2, 1, 3, 4, 5, 6));
  EXPECT_THAT(ErrorOf(RunOp("ReverseSequence", {x, I64({2}, {4, 2})})),
              HasSubstr("is 4, outside [0, 3]"));
}

TEST(GroupNormTest, StatisticsOfOneChannelOrOfAGroup) {
  const Tensor x = F32({1, 2, 2}, {1, 3, 10, 30});
  const Tensor scale = F32({2}, {1, 2}), bias = F32({2}, {0, 5});
  const Attributes exact = {{"epsilon", 0.0f}};
  EXPECT_THAT(Numbers(RunOp("InstanceNormalization", {x, scale, bias}, exact)),
              Pointwise(DoubleNear(1e-6), {-1, 1, 3, 7}));
  Attributes grouped = exact;
  grouped.Set("num_groups", int64_t{1});
  const Tensor line = F32({1, 2, 1}, {1, 3});
  EXPECT_THAT(Numbers(RunOp("GroupNormalization", {line, scale, bias}, grouped)),
              Pointwise(DoubleNear(1e-6), {-1, 7}));
  grouped.Set("num_groups", int64_t{3});
  EXPECT_THAT(ErrorOf(RunOp("GroupNormalization", {line, scale, bias}, grouped)),
              HasSubstr("num_groups 3 does not divide 2 channels"));
}

TEST(ShrinkTest, WhatIsNearZeroIsZero) {
  EXPECT_THAT(Numbers(RunOp("Shrink", {F32({4}, {-2, -0.5, 0.5, 3})}, {{"bias", 1.0f}})),
              ElementsAre(-1, 0, 0, 2));
}

// The filter is as wide as the elements that it makes one of. Values of onnxruntime, and of ONNX.
TEST(ResizeTest, AntialiasSkipsNothing) {
  const Tensor x = F32({1, 8}, {0, 10, 3, 7, 100, 20, 5, 1});
  const auto resized = [&](const char* mode, float scale, int64_t exclude) {
    return Numbers(RunOp(
        "Resize", {x, std::nullopt, F32({2}, {1, scale})},
        {{"mode", std::string(mode)}, {"antialias", int64_t{1}}, {"exclude_outside", exclude}}));
  };
  const auto expect = [](const std::vector<double>& got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-4) << i;
  };
  expect(resized("linear", 0.5f, 0), {4.125, 17.5, 46.5, 4.875});
  expect(resized("linear", 0.6f, 0), {3.75, 5.4444, 55.125, 24.375});
  expect(resized("linear", 0.5f, 1), {4.7143, 17.5, 46.5, 5.4286});
  expect(resized("cubic", 0.5f, 0), {2.6602, 17.6465, 53.9004, -0.082});
  expect(resized("cubic", 0.6f, 1), {4.2704, 0.4343, 60.1084, 23.8129});
  // Nothing changes where nothing is skipped: growing, and the nearest element.
  for (const char* mode : {"linear", "cubic"}) {
    const auto plain = Numbers(
        RunOp("Resize", {x, std::nullopt, F32({2}, {1, 1.5f})}, {{"mode", std::string(mode)}}));
    expect(resized(mode, 1.5f, 0), plain);
  }
  EXPECT_EQ(resized("nearest", 0.5f, 0),
            Numbers(RunOp("Resize", {x, std::nullopt, F32({2}, {1, 0.5f})})));
}

// Between integers the sample is rounded, once: 60 and 165 are exact. onnxruntime rounds after each
// dim, and has 61 and 166 there.
TEST(ResizeTest, AntialiasRoundsIntegers) {
  std::vector<uint8_t> values;
  for (int i = 0; i < 16; ++i) values.push_back(static_cast<uint8_t>(i * 15 % 251));
  const auto y = RunOp("Resize", {U8({4, 4}, values), std::nullopt, std::nullopt, I64({2}, {2, 3})},
                       {{"mode", std::string("linear")}, {"antialias", int64_t{1}}});
  EXPECT_THAT(Numbers(y), ElementsAre(42, 60, 78, 147, 165, 183));
}

}  // namespace
}  // namespace reprise
