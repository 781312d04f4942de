#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kIntegerLinear[] = "reprise.IntegerLinear";
const Tensor kB = I8({2, 2}, {1, 2, -3, 4});

TEST(IntegerLinearTest, ZeroPointsAreTakenOffBeforeTheProduct) {
  // (3 - 1, 4 - 1) times (1 + 1, 2 + 1; -3 + 1, 4 + 1), in steps of 0.5 times 0.25.
  EXPECT_THAT(Numbers(RunOp(kIntegerLinear, {U8({1, 2}, {3, 4}), kB, F32({}, {0.5f}),
                                             F32({1}, {0.25f}), U8({}, {1}), I8({}, {-1})})),
              ElementsAre(-0.25, 2.625));
}

TEST(IntegerLinearTest, RowsAndColumnsHaveTheirOwn) {
  const auto result =
      RunOp(kIntegerLinear, {I8({2, 1, 2}, {1, 0, 0, 1}), kB, F32({2, 1, 1}, {1, 10}),
                             F32({2}, {1, 100}), I8({2, 1, 1}, {0, -1}), I8({2}, {1, 0})});
  // Row 0: (1, 0). Row 1: (0 + 1, 1 + 1). Columns: (0, -4) and (2, 4).
  EXPECT_THAT(Numbers(result), ElementsAre(0, 200, -80, 10000));
  EXPECT_EQ(ShapeOf(result), (Shape{2, 1, 2}));
}

TEST(IntegerLinearTest, SumsAreExact) {
  // Above 2^24, where a float would no longer hold every whole number on the way.
  constexpr int64_t kSize = 601;
  const auto result = RunOp(kIntegerLinear, {U8({1, kSize}, std::vector<uint8_t>(kSize, 255)),
                                             U8({kSize, 1}, std::vector<uint8_t>(kSize, 255)),
                                             kUnitScale, kUnitScale, std::nullopt, U8({}, {127})});
  EXPECT_THAT(Numbers(result), ElementsAre(static_cast<float>(255 * 128 * kSize)));
}

TEST(IntegerLinearTest, ActivationComesBetweenBiasAndResidual) {
  const OptionalTensors inputs = {
      U8({1, 2}, {1, 1}), kB,           kUnitScale,       kUnitScale,
      std::nullopt,       std::nullopt, F32({2}, {1, 1}), F32({1, 2}, {100, 200})};
  EXPECT_THAT(Numbers(RunOp(kIntegerLinear, inputs, {{"activation", std::string("relu")}})),
              ElementsAre(100, 207));
  EXPECT_THAT(
      RunOp(kIntegerLinear, inputs, {{"activation", std::string("magic")}}).status().message(),
      HasSubstr("magic"));
}

TEST(IntegerLinearTest, RefusalsNameTheInputAndBothShapes) {
  const Tensor a = U8({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto message = [&](const OptionalTensors& inputs) {
    return std::string(RunOp(kIntegerLinear, inputs).status().message());
  };
  // One scale a row has a dim of its own.
  EXPECT_THAT(message({a, kB, F32({3}, {1, 1, 1}), kUnitScale}),
              HasSubstr("input 2 has the shape [3], expected one element or [3, 1]"));
  EXPECT_THAT(message({a, kB, kUnitScale, F32({3}, {1, 1, 1})}),
              HasSubstr("input 3 has the shape [3], expected one element or [2]"));
  EXPECT_THAT(message({a, kB, kUnitScale, kUnitScale, U8({2, 1}, {1, 1})}),
              HasSubstr("input 4 has the shape [2, 1], expected one element or [3, 1]"));
  EXPECT_THAT(message({a, kB, kUnitScale, kUnitScale, std::nullopt, I8({3}, {1, 1, 1})}),
              HasSubstr("input 5 has the shape [3], expected one element or [2]"));
  EXPECT_THAT(message({a, kB, kUnitScale, kUnitScale, std::nullopt, std::nullopt, F32({1}, {1})}),
              HasSubstr("input 6 has the shape [1], expected [2]"));
  EXPECT_THAT(message({a, kB, kUnitScale, kUnitScale, std::nullopt, std::nullopt, std::nullopt,
                       F32({2}, {1, 1})}),
              HasSubstr("input 7 has the shape [2], expected [3, 2]"));
  EXPECT_THAT(message({a, kB, kUnitScale, kUnitScale, I8({}, {1})}),
              HasSubstr("inputs 0 and 4 are of dtypes"));
  EXPECT_THAT(message({U8({1, 3}, {1, 2, 3}), kB, kUnitScale, kUnitScale}),
              HasSubstr("inner sizes 3 and 2"));
  EXPECT_THAT(message({F32({1, 2}, {1, 2}), kB, kUnitScale, kUnitScale}), HasSubstr("input 0"));
}

}  // namespace
}  // namespace reprise
