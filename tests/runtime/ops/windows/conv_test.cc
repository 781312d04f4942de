#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

const Tensor kOneToFive = F32({1, 1, 5}, {1, 2, 3, 4, 5});
const Tensor kSum3 = F32({1, 1, 3}, {1, 1, 1});

TEST(ConvTest, OneDimWithBiasAndUnevenPadding) {
  EXPECT_THAT(Numbers(RunOp("Conv", {kOneToFive, kSum3, F32({1}, {100})}, {{"pads", Ints{2, 0}}})),
              ElementsAre(101, 103, 106, 109, 112));
}

TEST(ConvTest, StridesAndDilations) {
  EXPECT_THAT(Numbers(RunOp("Conv", {kOneToFive, kSum3}, {{"strides", Ints{2}}})),
              ElementsAre(6, 12));
  EXPECT_THAT(Numbers(RunOp("Conv", {kOneToFive, kSum3},
                            {{"dilations", Ints{2}}, {"pads", Ints{2, 2}}, {"strides", Ints{3}}})),
              ElementsAre(4, 6));
}

TEST(ConvTest, AutomaticPaddingPutsTheOddOneWhereItSays) {
  const auto run = [](const char* mode) {
    return Numbers(RunOp("Conv", {F32({1, 1, 4}, {1, 2, 3, 4}), F32({1, 1, 2}, {1, 10})},
                         {{"auto_pad", std::string(mode)}}));
  };
  EXPECT_THAT(run("SAME_UPPER"), ElementsAre(21, 32, 43, 4));
  EXPECT_THAT(run("SAME_LOWER"), ElementsAre(10, 21, 32, 43));
  EXPECT_THAT(run("VALID"), ElementsAre(21, 32, 43));
}

TEST(ConvTest, TwoDims) {
  const Tensor x = F32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor weight = F32({1, 1, 2, 2}, {1, 0, 0, 10});
  EXPECT_THAT(Numbers(RunOp("Conv", {x, weight})), ElementsAre(51, 62, 84, 95));
  const auto padded = RunOp("Conv", {x, weight}, {{"pads", Ints{1, 1, 0, 0}}});
  EXPECT_EQ(ShapeOf(padded), (Shape{1, 1, 3, 3}));
  EXPECT_THAT(Numbers(padded), ElementsAre(10, 20, 30, 40, 51, 62, 70, 84, 95));
}

TEST(ConvTest, GroupsSeeTheirOwnChannels) {
  const Tensor x = F32({2, 2, 2}, {1, 2, 10, 20, 3, 4, 30, 40});
  const Tensor weight = F32({4, 1, 1}, {1, 2, 3, 4});
  EXPECT_THAT(Numbers(RunOp("Conv", {x, weight}, {{"group", int64_t{2}}})),
              ElementsAre(1, 2, 2, 4, 30, 60, 40, 80, 3, 4, 6, 8, 90, 120, 120, 160));
}

TEST(ConvTest, WhatDoesNotFitIsRefusedWithBothNumbers) {
  EXPECT_THAT(ErrorOf(RunOp("Conv", {kOneToFive, F32({1, 2, 3}, {1, 1, 1, 1, 1, 1})})),
              HasSubstr("does not fit 1 channels"));
  EXPECT_THAT(ErrorOf(RunOp("Conv", {F32({1, 1, 2}, {1, 2}), kSum3})),
              HasSubstr("window of 3 is larger than dim 2 of 2"));
  EXPECT_THAT(ErrorOf(RunOp("Conv", {kOneToFive, kSum3, F32({2}, {1, 1})})),
              HasSubstr("does not fit 1 maps"));
  EXPECT_THAT(ErrorOf(RunOp("Conv", {kOneToFive, kSum3}, {{"kernel_shape", Ints{2}}})),
              HasSubstr("kernel_shape [2]"));
  EXPECT_THAT(ErrorOf(RunOp("Conv", {kOneToFive, kSum3}, {{"strides", Ints{0}}})),
              HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf(RunOp("Conv", {kOneToFive, kSum3}, {{"auto_pad", std::string("SAME")}})),
              HasSubstr("auto_pad 'SAME'"));
}

TEST(FusedConvTest, ResidualComesBeforeTheActivation) {
  const Tensor residual = F32({1, 1, 3}, {-10, 1, -13});
  const auto run = [&](Attributes attributes) {
    return Numbers(
        RunOp("reprise.Conv", {kOneToFive, kSum3, F32({1}, {1}), residual}, std::move(attributes)));
  };
  EXPECT_THAT(run({}), ElementsAre(-3, 11, 0));
  EXPECT_THAT(run({{"activation", std::string("relu")}}), ElementsAre(0, 11, 0));
  EXPECT_THAT(run({{"activation", std::string("clip")}, {"high", 6.0f}}), ElementsAre(-3, 6, 0));
  EXPECT_THAT(run({{"activation", std::string("leaky_relu")}, {"slope", 0.5f}}),
              ElementsAre(-1.5, 11, 0));
  EXPECT_THAT(run({{"activation", std::string("hard_swish")}}), ElementsAre(0, 11, 0));
  EXPECT_THAT(run({{"activation", std::string("elu")}, {"slope", 2.0f}}),
              ElementsAre(testing::DoubleNear(-1.9004259, 1e-6), 11, 0));
  EXPECT_THAT(run({{"activation", std::string("mish")}}),
              ElementsAre(testing::DoubleNear(-0.1456475, 1e-6), testing::DoubleNear(11, 1e-5), 0));
}

TEST(FusedConvTest, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(ErrorOf(RunOp("reprise.Conv", {kOneToFive, kSum3, std::nullopt, kOneToFive})),
              HasSubstr("the residual has the shape [1, 1, 5], the result [1, 1, 3]"));
  EXPECT_THAT(
      ErrorOf(RunOp("reprise.Conv", {kOneToFive, kSum3}, {{"activation", std::string("magic")}})),
      HasSubstr("unknown activation 'magic'"));
}

TEST(AveragePoolTest, OneDimWithPadding) {
  const Attributes attributes = {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}};
  const Tensor x = F32({1, 1, 3}, {2, 4, 6});
  EXPECT_THAT(Numbers(RunOp("AveragePool", {x}, attributes)), ElementsAre(2, 3, 5));
  Attributes counted = attributes;
  counted.Set("count_include_pad", int64_t{1});
  EXPECT_THAT(Numbers(RunOp("AveragePool", {x}, counted)), ElementsAre(1, 3, 5));
}

TEST(MaxPoolTest, PaddingIsNeverTheLargest) {
  const Tensor x = F32({1, 1, 3}, {-5, -4, -6});
  const auto result = RunOp("MaxPool", {x}, {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}});
  EXPECT_THAT(Numbers(result), ElementsAre(-5, -4, -4, -6));
}

TEST(MaxPoolTest, LastWindowIsCutInCeilMode) {
  const Attributes attributes = {
      {"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_THAT(Numbers(RunOp("MaxPool", {kOneToFive}, attributes)), ElementsAre(2, 4, 5));
}

TEST(AveragePoolTest, AWindowThatReachesBehindTheInputIsCutInCeilMode) {
  const Attributes attributes = {
      {"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_THAT(Numbers(RunOp("AveragePool", {F32({1, 1, 1}, {3})}, attributes)), ElementsAre(3));
  EXPECT_THAT(Numbers(RunOp("MaxPool", {F32({1, 1, 1}, {3})}, attributes)), ElementsAre(3));
}

// Whether or not ceil_mode is set, as onnxruntime has it.
TEST(AveragePoolTest, OfAWindowLargerThanTheInputByAStrideThereIsNone) {
  for (const int64_t ceil_mode : {0, 1}) {
    const auto of_size = [&](int64_t kernel) {
      return RunOp(
          "AveragePool", {F32({1, 1, 2}, {3, 4})},
          {{"kernel_shape", Ints{kernel}}, {"strides", Ints{2}}, {"ceil_mode", ceil_mode}});
    };
    EXPECT_THAT(Numbers(of_size(3)), ElementsAre(3.5));
    EXPECT_EQ(ShapeOf(of_size(4)), (Shape{1, 1, 0}));
    EXPECT_EQ(ShapeOf(of_size(5)), (Shape{1, 1, 0}));
    EXPECT_THAT(ErrorOf(of_size(6)), HasSubstr("window of 6 is larger than dim 2 of 2"));
  }
}

TEST(MaxPoolTest, AWindowWithoutBoundsIsRefused) {
  constexpr int64_t kHuge = 1 << 20;
  for (const int64_t other : {kHuge, int64_t{17}}) {
    EXPECT_THAT(ErrorOf(RunOp("MaxPool", {F32({1, 1, 2, 2}, {1, 2, 3, 4})},
                              {{"kernel_shape", Ints{kHuge, other}},
                               {"pads", Ints{kHuge / 2, 8, kHuge / 2, 8}}})),
                HasSubstr("has more than 16777216 elements"));
  }
}

TEST(MaxPoolTest, TwoDimsAndWhereTheyAre) {
  const Tensor x = F32({1, 2, 2, 2}, {1, 9, 3, 4, 5, 6, 8, 7});
  Attributes attributes = {{"kernel_shape", Ints{2, 2}}};
  EXPECT_THAT(Numbers(RunOp("MaxPool", {x}, attributes, 2), 0), ElementsAre(9, 8));
  EXPECT_THAT(Numbers(RunOp("MaxPool", {x}, attributes, 2), 1), ElementsAre(1, 6));
  attributes.Set("storage_order", int64_t{1});
  EXPECT_THAT(Numbers(RunOp("MaxPool", {x}, attributes, 2), 1), ElementsAre(2, 5));
}

TEST(MaxPoolTest, IntegersAndNaN) {
  const Attributes attributes = {{"kernel_shape", Ints{2}}};
  EXPECT_THAT(Numbers(RunOp("MaxPool", {I8({1, 1, 3}, {-128, -3, 2})}, attributes)),
              ElementsAre(-3, 2));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto result = Numbers(RunOp("MaxPool", {F32({1, 1, 3}, {nan, 1, 2})}, attributes));
  ASSERT_EQ(result.size(), 2u);
  EXPECT_TRUE(std::isnan(result[0]));
  EXPECT_EQ(result[1], 2);
}

TEST(LpPoolTest, NormOfAWindowWhosePaddingCountsAsZero) {
  const Tensor x = F32({1, 1, 4}, {3, -4, 0, 2});
  Attributes attributes = {{"kernel_shape", Ints{2}}, {"pads", Ints{0, 1}}};
  EXPECT_THAT(Numbers(RunOp("LpPool", {x}, attributes)), ElementsAre(5, 4, 2, 2));
  attributes.Set("p", int64_t{1});
  EXPECT_THAT(Numbers(RunOp("LpPool", {x}, attributes)), ElementsAre(7, 4, 2, 2));
  attributes.Set("p", int64_t{0});
  EXPECT_THAT(ErrorOf(RunOp("LpPool", {x}, attributes)), HasSubstr("no norm of p = 0"));
}

TEST(GlobalPoolTest, NormOfAllDims) {
  const Tensor x = F32({1, 2, 2, 2}, {1, 1, 1, -1, 2, 2, -2, 2});
  EXPECT_THAT(Numbers(RunOp("GlobalLpPool", {x})), ElementsAre(2, 4));
  EXPECT_THAT(Numbers(RunOp("GlobalLpPool", {x}, {{"p", int64_t{1}}})), ElementsAre(4, 8));
}

TEST(GlobalPoolTest, MeanAndLargestOfAllDims) {
  const Tensor x = F32({1, 2, 2, 2}, {1, 2, 3, 6, -1, -1, -1, -5});
  EXPECT_THAT(Numbers(RunOp("GlobalAveragePool", {x})), ElementsAre(3, -2));
  EXPECT_THAT(Numbers(RunOp("GlobalMaxPool", {x})), ElementsAre(6, -1));
  EXPECT_EQ(ShapeOf(RunOp("GlobalMaxPool", {x})), (Shape{1, 2, 1, 1}));
}

}  // namespace
}  // namespace reprise
