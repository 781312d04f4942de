#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

const Tensor kOneToThree = F32({1, 1, 3}, {1, 2, 3});
const Tensor kDigits = F32({1, 1, 3}, {1, 10, 100});

std::vector<double> OfRow(Attributes attributes) {
  return Numbers(RunOp("ConvTranspose", {kOneToThree, kDigits}, std::move(attributes)));
}

TEST(ConvTransposeTest, ElementsAreSpreadOverTheirWindows) {
  EXPECT_THAT(OfRow({}), ElementsAre(1, 12, 123, 230, 300));
  EXPECT_THAT(OfRow({{"pads", Ints{1, 0}}}), ElementsAre(12, 123, 230, 300));
  EXPECT_THAT(OfRow({{"strides", Ints{3}}, {"dilations", Ints{2}}}),
              ElementsAre(1, 0, 10, 2, 100, 20, 3, 200, 30, 0, 300));
  EXPECT_THAT(
      Numbers(
          RunOp("ConvTranspose", {kOneToThree, kDigits, F32({1}, {1000})}, {{"strides", Ints{5}}})),
      ElementsAre(1001, 1010, 1100, 1000, 1000, 1002, 1020, 1200, 1000, 1000, 1003, 1030, 1300));
}

TEST(ConvTransposeTest, AutomaticPaddingMultipliesTheSizeByTheStride) {
  const auto run = [](const char* mode, Attributes attributes) {
    attributes.Set("auto_pad", std::string(mode));
    attributes.Set("strides", Ints{2});
    return OfRow(std::move(attributes));
  };
  EXPECT_THAT(run("SAME_UPPER", {}), ElementsAre(1, 10, 102, 20, 203, 30));
  EXPECT_THAT(run("SAME_LOWER", {}), ElementsAre(10, 102, 20, 203, 30, 300));
  EXPECT_THAT(run("SAME_UPPER", {{"output_padding", Ints{1}}}),
              ElementsAre(10, 102, 20, 203, 30, 300));
  EXPECT_THAT(run("VALID", {}), ElementsAre(1, 10, 102, 20, 203, 30, 300));
}

TEST(ConvTransposeTest, ResultsOfAGivenShapeAreCutOnBothSides) {
  EXPECT_THAT(OfRow({{"output_shape", Ints{4}}}), ElementsAre(12, 123, 230, 300));
  EXPECT_THAT(OfRow({{"output_shape", Ints{1, 1, 4}}}), ElementsAre(12, 123, 230, 300));
  EXPECT_THAT(OfRow({{"output_shape", Ints{4}}, {"auto_pad", std::string("SAME_UPPER")}}),
              ElementsAre(1, 12, 123, 230));
  EXPECT_THAT(OfRow({{"output_shape", Ints{4}}, {"pads", Ints{0, 1}}}),
              ElementsAre(12, 123, 230, 300));
  EXPECT_THAT(OfRow({{"output_shape", Ints{8}}, {"strides", Ints{2}}, {"output_padding", Ints{1}}}),
              ElementsAre(1, 10, 102, 20, 203, 30, 300, 0));
}

TEST(ConvTransposeTest, TwoDimsAndGroups) {
  const Tensor x = F32({1, 2, 1, 2}, {1, 2, 3, 4});
  const Tensor weight = F32({2, 1, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
  const auto apart = RunOp("ConvTranspose", {x, weight}, {{"group", int64_t{2}}});
  EXPECT_EQ(ShapeOf(apart), (Shape{1, 2, 2, 3}));
  EXPECT_THAT(Numbers(apart), ElementsAre(1, 4, 4, 3, 10, 8, 30, 100, 80, 90, 240, 160));
  const auto together = RunOp("ConvTranspose", {x, weight});
  EXPECT_EQ(ShapeOf(together), (Shape{1, 1, 2, 3}));
  EXPECT_THAT(Numbers(together), ElementsAre(31, 104, 84, 93, 250, 168));
}

TEST(ConvTransposeTest, WhatDoesNotFitIsRefusedWithBothNumbers) {
  const auto error = [](Attributes attributes) {
    return ErrorOf(RunOp("ConvTranspose", {kOneToThree, kDigits}, std::move(attributes)));
  };
  EXPECT_THAT(ErrorOf(RunOp("ConvTranspose", {kOneToThree, F32({2, 1, 1}, {1, 1})})),
              HasSubstr("does not fit 1 channels"));
  EXPECT_THAT(ErrorOf(RunOp("ConvTranspose", {kOneToThree, kDigits, F32({2}, {1, 1})})),
              HasSubstr("does not fit 1 maps"));
  EXPECT_THAT(error({{"kernel_shape", Ints{2}}}), HasSubstr("kernel_shape [2]"));
  EXPECT_THAT(error({{"output_padding", Ints{1}}}), HasSubstr("output_padding 1 of dim 2"));
  EXPECT_THAT(error({{"output_shape", Ints{9}}, {"strides", Ints{2}}}),
              HasSubstr("a dim 2 of 9 does not fit windows of 3 in strides of 2"));
  EXPECT_THAT(error({{"pads", Ints{3, 2}}}), HasSubstr("a dim 2 of 0"));
  EXPECT_THAT(error({{"pads", Ints{3, -1}}}), HasSubstr("out of range"));
  EXPECT_THAT(error({{"output_padding", Ints{0, 0}}}), HasSubstr("does not fit the 1 dims"));
}

}  // namespace
}  // namespace reprise
