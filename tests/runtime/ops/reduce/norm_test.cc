#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

const double kRoot = std::sqrt(1.5);  // the square root of 1 / variance of {1, 2, 3}
const Attributes kNoEpsilon = {{"epsilon", 0.0f}};

TEST(SoftmaxTest, LastAxisByDefaultAndLargeValuesStayFinite) {
  const auto result = RunOp("Softmax", {F32({2, 2}, {1000, 1000, 0, std::log(3.0f)})});
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-6), {0.5, 0.5, 0.25, 0.75}));
}

TEST(SoftmaxTest, OuterAxis) {
  EXPECT_THAT(Numbers(RunOp("Softmax", {F32({2, 1}, {1, 1})}, {{"axis", int64_t{0}}})),
              ElementsAre(0.5, 0.5));
}

TEST(SoftmaxTest, AFullyMaskedRowIsNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(Numbers(RunOp("Softmax", {F32({2}, {-inf, -inf})}))[0]));
}

TEST(SoftmaxTest, LogAndHard) {
  EXPECT_THAT(Numbers(RunOp("LogSoftmax", {F32({2}, {0, 0})})),
              Pointwise(DoubleNear(1e-6), {-0.693147, -0.693147}));
  EXPECT_THAT(Numbers(RunOp("Hardmax", {F32({3}, {1, 5, 5})})), ElementsAre(0, 1, 0));
}

TEST(LayerNormTest, ScaleBiasAndStatistics) {
  const auto result =
      RunOp("LayerNormalization",
            {F32({1, 3}, {1, 2, 3}), F32({3}, {1, 1, 2}), F32({3}, {0, 10, 0})}, kNoEpsilon, 3);
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-5), {-kRoot, 10.0, 2 * kRoot}));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(2));
  EXPECT_THAT(Numbers(result, 2), Pointwise(DoubleNear(1e-5), {kRoot}));
  EXPECT_EQ(ShapeOf(result, 1), (Shape{1, 1}));
}

TEST(LayerNormTest, EpsilonCounts) {
  const auto result =
      RunOp("LayerNormalization", {F32({3}, {1, 2, 3}), F32({3}, {1, 1, 1})}, {{"epsilon", 1.0f}});
  const double inverse = 1 / std::sqrt(2.0 / 3 + 1);
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-6), {-inverse, 0.0, inverse}));
}

TEST(LayerNormTest, ScaleOfAnotherWidthIsRefused) {
  EXPECT_FALSE(RunOp("LayerNormalization", {F32({3}, {1, 2, 3}), F32({2}, {1, 1})}).ok());
}

TEST(AddLayerNormTest, GivesNormalisedAndSum) {
  const auto result =
      RunOp("reprise.AddLayerNorm",
            {F32({1, 3}, {1, 1, 1}), F32({1, 3}, {0, 1, 2}), F32({3}, {1, 1, 1})}, kNoEpsilon, 2);
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-5), {-kRoot, 0.0, kRoot}));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(1, 2, 3));
}

TEST(RmsNormTest, MeanStays) {
  const auto result = RunOp("RMSNormalization", {F32({2}, {3, 4}), F32({2}, {1, 1})}, kNoEpsilon);
  const double rms = std::sqrt(12.5);
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-6), {3 / rms, 4 / rms}));
}

TEST(BatchNormTest, UsesGivenStatistics) {
  const Tensor one = F32({1}, {1});
  const auto result =
      RunOp("BatchNormalization", {F32({1, 1, 2}, {3, 5}), F32({1}, {2}), one, one, F32({1}, {4})},
            kNoEpsilon);
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-6), {3.0, 5.0}));
}

}  // namespace
}  // namespace reprise
