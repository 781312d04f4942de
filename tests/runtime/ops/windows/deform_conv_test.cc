#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kX = F32({1, 1, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
const Tensor kOnes = F32({1, 1, 2, 2}, {1, 1, 1, 1});

// Offsets [1, 8, 2, 2]: of four taps, each down and right.
std::vector<float> Offsets() {
  std::vector<float> offsets(32, 0);
  offsets[0] = 0.5f;           // tap 0, down, first window
  offsets[5 * 4 + 1] = -0.1f;  // tap 2, right, second window
  return offsets;
}

TEST(DeformConvTest, TapsReadBesideTheirPlaces) {
  const auto y = RunOp("DeformConv", {kX, kOnes, F32({1, 8, 2, 2}, Offsets()), F32({1}, {1})});
  EXPECT_EQ(ShapeOf(y), Shape({1, 1, 2, 2}));
  const std::vector<double> numbers = Numbers(y);
  const double wanted[] = {10.5, 12.9, 21, 25};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(numbers[i], wanted[i], 1e-5) << i;
}

TEST(DeformConvTest, WhatLiesOutsideIsZeroAndMasksWeigh) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> far(32, 0), masks(16, 1);
  far[0] = -1e30f;
  far[1] = nan;
  far[2] = std::numeric_limits<float>::infinity();
  masks[3] = 0.5f;
  const auto y = RunOp("DeformConv",
                       {kX, kOnes, F32({1, 8, 2, 2}, far), std::nullopt, F32({1, 4, 2, 2}, masks)});
  // The first tap of three windows reads nothing, the last one's half of 4.
  EXPECT_THAT(Numbers(y), ElementsAre(8, 11, 17, 22));
}

TEST(DeformConvTest, WithoutOffsetsItIsAConvolution) {
  std::vector<float> x, weights, mask(2 * 2 * 4 * 16, 1);
  for (int i = 0; i < 2 * 4 * 25; ++i) x.push_back(static_cast<float>(i * 13 % 17) - 8);
  for (int i = 0; i < 6 * 2 * 4; ++i) weights.push_back(static_cast<float>(i * 7 % 11) - 5);
  const Attributes attributes = {{"group", int64_t{2}},
                                 {"pads", std::vector<int64_t>{1, 0, 0, 1}},
                                 {"dilations", std::vector<int64_t>{2, 2}}};
  Attributes deformed = attributes;
  deformed.Set("offset_group", int64_t{2});
  const OptionalTensors operands = {F32({2, 4, 5, 5}, x), F32({6, 2, 2, 2}, weights)};
  const auto wanted = RunOp("Conv", operands, attributes);
  const Shape out = ShapeOf(wanted);
  ASSERT_EQ(out, Shape({2, 6, 4, 4}));
  OptionalTensors more = operands;
  more.emplace_back(F32({2, 16, 4, 4}, std::vector<float>(2 * 16 * 16, 0)));
  more.emplace_back(std::nullopt);
  more.emplace_back(F32({2, 8, 4, 4}, mask));
  EXPECT_EQ(Numbers(RunOp("DeformConv", more, deformed)), Numbers(wanted));
}

// The columns that a product turns into the convolution.
TEST(DeformConvTest, ColumnsAreWhatWindowsRead) {
  const auto columns = RunOp("reprise.DeformColumns", {kX, F32({1, 8, 2, 2}, Offsets())},
                             {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  EXPECT_EQ(ShapeOf(columns), Shape({1, 4, 4}));
  const std::vector<double> numbers = Numbers(columns);
  const double wanted[] = {1.5, 1, 3, 4, 1, 2, 3.9, 5, 3, 4, 6, 7, 4, 5, 7, 8};
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(numbers[i], wanted[i], 1e-5) << i;
}

TEST(DeformConvTest, WhatDoesNotFitIsRefusedByName) {
  const Tensor offsets = F32({1, 8, 2, 2}, Offsets());
  EXPECT_THAT(ErrorOf(RunOp("DeformConv", {kX, kOnes, F32({1, 8, 4, 1}, Offsets())})),
              HasSubstr("offsets have the shape [1, 8, 4, 1], expected [1, 8, 2, 2]"));
  EXPECT_THAT(ErrorOf(RunOp("DeformConv", {kX, kOnes, offsets, std::nullopt, F32({1}, {1})})),
              HasSubstr("the mask has the shape [1], expected [1, 4, 2, 2]"));
  EXPECT_THAT(ErrorOf(RunOp("DeformConv", {kX, kOnes, offsets, F32({2}, {1, 1})})),
              HasSubstr("a bias [2] does not fit 1 maps"));
  EXPECT_THAT(ErrorOf(RunOp("DeformConv", {kX, kOnes, offsets}, {{"offset_group", int64_t{2}}})),
              HasSubstr("1 channels do not split into offset_group = 2"));
  EXPECT_THAT(ErrorOf(RunOp("DeformConv", {kX, kOnes, offsets}, {{"group", int64_t{0}}})),
              HasSubstr("weights [1, 1, 2, 2] of 0 groups"));
}

}  // namespace
}  // namespace reprise
