#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

constexpr char kIntegerConv[] = "reprise.IntegerConv";
const Tensor kRow = U8({1, 1, 4}, {3, 4, 5, 255});
const Tensor kPair = I8({2, 1, 2}, {1, 2, -128, 127});

TEST(IntegerConvTest, ZeroPointsAreTakenOffAndArePadding) {
  // The differences are (0, 2, 3, 4, 254): the 0 in front is padding. Weights are (2, 3) and (-127,
  // 128), in steps of 0.5 times 0.25.
  EXPECT_THAT(
      Numbers(RunOp(kIntegerConv,
                    {kRow, kPair, F32({}, {0.5f}), F32({1}, {0.25f}), U8({}, {1}), I8({}, {-1})},
                    {{"pads", Ints{1, 0}}})),
      ElementsAre(0.75, 1.625, 2.25, 96.25, 32, 16.25, 16.375, 4000.5));
}

TEST(IntegerConvTest, MapsHaveTheirOwnScalesZeroPointsAndBias) {
  const auto result = RunOp(kIntegerConv, {kRow, kPair, kUnitScale, F32({2}, {1, 100}),
                                           std::nullopt, I8({2}, {0, 127}), F32({2}, {0.5f, 0})});
  EXPECT_THAT(Numbers(result), ElementsAre(11.5, 14.5, 515.5, -76500, -102000, -127500));
  EXPECT_EQ(ShapeOf(result), (Shape{1, 2, 3}));
}

TEST(IntegerConvTest, ActivationFollowsTheResidual) {
  EXPECT_THAT(Numbers(RunOp(kIntegerConv,
                            {kRow, I8({1, 1, 4}, {1, 0, 0, 0}), kUnitScale, kUnitScale,
                             std::nullopt, std::nullopt, F32({1}, {1}), F32({1, 1, 1}, {-10})},
                            {{"activation", std::string("relu")}})),
              ElementsAre(0));
}

TEST(IntegerConvTest, ResultsAreQuantisedToHalvesToEvenAndSaturated) {
  // 12, 16, 20, 1020 in steps of 8 above -3.
  EXPECT_THAT(Numbers(RunOp(kIntegerConv, {kRow, I8({1, 1, 1}, {4}), kUnitScale, kUnitScale,
                                           std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                           F32({}, {8}), I8({}, {-3})})),
              ElementsAre(-1, -1, -1, 125));
  // The result has steps of 4.
  EXPECT_THAT(Numbers(RunOp(kIntegerConv, {kRow, I8({1, 1, 1}, {4}), kUnitScale, kUnitScale,
                                           std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                           F32({}, {4}), I8({}, {-3})})),
              ElementsAre(0, 1, 2, 127));
  EXPECT_THAT(
      std::string(RunOp(kIntegerConv, {kRow, kPair, kUnitScale, kUnitScale, std::nullopt,
                                       std::nullopt, std::nullopt, std::nullopt, F32({}, {8})})
                      .status()
                      .message()),
      HasSubstr("the result has only one of scale and zero point"));
}

TEST(IntegerConvTest, ChannelsMayBeBehindTheOtherDims) {
  // Two channels of three elements, two maps of windows of two.
  const Tensor first = U8({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor last = U8({1, 3, 2}, {1, 4, 2, 5, 3, 6});
  const Tensor weight = I8({2, 2, 2}, {1, 0, 0, 0, 0, 0, 1, 10});
  const auto run = [&](const Tensor& x, const std::string& layout) {
    return RunOp(
        kIntegerConv,
        {x, weight, kUnitScale, kUnitScale, std::nullopt, std::nullopt, F32({2}, {0, 0.5f})},
        {{"layout", layout}});
  };
  EXPECT_THAT(Numbers(run(first, "first")), ElementsAre(1, 2, 54.5, 65.5));
  for (const auto& result : {run(last, "last"), run(first, "to_last")}) {
    EXPECT_THAT(Numbers(result), ElementsAre(1, 54.5, 2, 65.5));
    EXPECT_EQ(ShapeOf(result), (Shape{1, 2, 2}));
  }
  EXPECT_THAT(std::string(run(first, "odd").status().message()), HasSubstr("layout 'odd'"));
}

TEST(IntegerAddTest, SidesHaveTheirOwnStepsAndSoDoesTheSum) {
  const auto add = [](const Tensor& a, const Tensor& b, const std::string& activation) {
    return RunOp("reprise.IntegerAdd",
                 {a, b, F32({}, {0.5f}), F32({1}, {2}), F32({}, {1}), U8({}, {4}), I8({}, {-1}),
                  U8({}, {10})},
                 {{"activation", activation}});
  };
  // -2 + 2, -1.5 + 0, 98 + 256, -2 - 254.
  const Tensor a = U8({4}, {0, 1, 200, 0}), b = I8({4}, {0, -1, 127, -128});
  EXPECT_THAT(Numbers(add(a, b, "none")), ElementsAre(10, 8, 255, 0));
  EXPECT_THAT(Numbers(add(a, b, "relu")), ElementsAre(10, 10, 255, 10));
  EXPECT_THAT(std::string(add(a, I8({2}, {0, 0}), "none").status().message()),
              HasSubstr("input 1 has the shape [2], expected [4]"));
}

TEST(IntegerConvTest, SumsAreExact) {
  // Above 2^24, where a float would no longer hold every whole number on the way.
  constexpr int64_t kSize = 601;
  const auto result = RunOp(kIntegerConv, {U8({1, kSize, 1}, std::vector<uint8_t>(kSize, 255)),
                                           U8({1, kSize, 1}, std::vector<uint8_t>(kSize, 255)),
                                           kUnitScale, kUnitScale, std::nullopt, U8({}, {127})});
  EXPECT_THAT(Numbers(result), ElementsAre(static_cast<float>(255 * 128 * kSize)));
}

TEST(IntegerConvTest, RefusalsNameTheInputAndBothShapes) {
  const auto message = [&](const OptionalTensors& inputs) {
    return std::string(RunOp(kIntegerConv, inputs).status().message());
  };
  EXPECT_THAT(message({kRow, kPair, F32({2}, {1, 1}), kUnitScale}),
              HasSubstr("input 2 has the shape [2], expected one element"));
  EXPECT_THAT(message({kRow, kPair, kUnitScale, F32({3}, {1, 1, 1})}),
              HasSubstr("input 3 has the shape [3], expected one element or [2]"));
  EXPECT_THAT(
      message({kRow, kPair, kUnitScale, kUnitScale, std::nullopt, std::nullopt, kUnitScale}),
      HasSubstr("input 6 has the shape [], expected [2]"));
  EXPECT_THAT(message({kRow, I8({2, 3, 1}, {1, 2, 3, 4, 5, 6}), kUnitScale, kUnitScale}),
              HasSubstr("does not fit 1 channels"));
}

}  // namespace
}  // namespace reprise
