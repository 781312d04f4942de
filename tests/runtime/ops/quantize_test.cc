#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(DequantizeTest, OneScaleForAll) {
  EXPECT_THAT(
      Numbers(RunOp("DequantizeLinear", {U8({3}, {0, 128, 255}), F32({}, {0.5f}), U8({}, {128})})),
      ElementsAre(-64, 0, 63.5));
}

TEST(DequantizeTest, OneScaleAPositionAlongANegativeAxis) {
  EXPECT_THAT(Numbers(RunOp("DequantizeLinear", {I8({2, 2}, {1, 2, 3, 4}), F32({2}, {1, 10})},
                            {{"axis", int64_t{-1}}})),
              ElementsAre(1, 20, 3, 40));
  EXPECT_THAT(Numbers(RunOp("DequantizeLinear", {I8({2, 2}, {1, 2, 3, 4}), F32({2}, {1, 10})},
                            {{"axis", int64_t{0}}})),
              ElementsAre(1, 2, 30, 40));
}

TEST(DequantizeTest, OneScaleABlock) {
  EXPECT_THAT(Numbers(RunOp("DequantizeLinear", {I8({1, 3}, {1, 2, 3}), F32({1, 2}, {1, 10})},
                            {{"axis", int64_t{1}}, {"block_size", int64_t{2}}})),
              ElementsAre(1, 2, 30));
}

TEST(DequantizeTest, ScaleOfAnotherSizeIsRefused) {
  EXPECT_FALSE(RunOp("DequantizeLinear", {I8({1, 3}, {1, 2, 3}), F32({2}, {1, 10})}).ok());
}

TEST(QuantizeTest, RoundsHalvesToEvenAndSaturates) {
  const auto result = RunOp("QuantizeLinear",
                            {F32({5}, {0.5f, 1.5f, 300, -300, 2.4f}), F32({}, {1}), U8({}, {10})});
  EXPECT_THAT(Numbers(result), ElementsAre(10, 12, 255, 0, 12));
  EXPECT_EQ((*result)[0].dtype(), DType::kUInt8);
}

TEST(QuantizeTest, DynamicCoversZero) {
  const auto result = RunOp("DynamicQuantizeLinear", {F32({3}, {0, 2, -3})}, {}, 3);
  EXPECT_THAT(Numbers(result, 0), ElementsAre(153, 255, 0));
  EXPECT_THAT(Numbers(result, 1), Pointwise(DoubleNear(1e-7), {5.0 / 255}));
  EXPECT_THAT(Numbers(result, 2), ElementsAre(153));
}

TEST(QuantizeTest, QLinearMatMulScalesTheIntegerProduct) {
  const Tensor one = F32({}, {1}), half = F32({}, {0.5f});
  const Tensor zero = U8({}, {0}), two = U8({}, {2});
  const auto result = RunOp(
      "QLinearMatMul", {U8({1, 2}, {4, 6}), half, two, U8({2, 1}, {3, 5}), one, zero, one, zero});
  EXPECT_THAT(Numbers(result), ElementsAre(13));
}

TEST(QuantizeTest, MatMulNBitsUnpacksLowBitsFirst) {
  const Attributes attributes = {
      {"K", int64_t{2}}, {"N", int64_t{1}}, {"bits", int64_t{4}}, {"block_size", int64_t{2}}};
  // Values 9 and 11, zero point 8: 1 and 3.
  const auto result =
      RunOp("com.microsoft.MatMulNBits",
            {F32({1, 2}, {1, 10}), U8({1, 1, 1}, {0xB9}), F32({1}, {2})}, attributes);
  EXPECT_THAT(Numbers(result), ElementsAre(62));
}

}  // namespace
}  // namespace reprise
