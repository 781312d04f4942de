#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

Attributes Bits(int64_t k, int64_t bits, int64_t block) {
  return {{"K", k}, {"bits", bits}, {"block_size", block}};
}

TEST(QuantizeTest, DequantizeBitsUnpacksLowBitsFirst) {
  // Values 9 and 11, zero point 8: 1 and 3.
  EXPECT_THAT(Numbers(RunOp("reprise.DequantizeBits", {U8({1, 1, 1}, {0xB9}), F32({1, 1}, {2})},
                            Bits(2, 4, 2))),
              ElementsAre(2, 6));
  // Values 1, 2, 3, 0, zero point 2.
  EXPECT_THAT(
      Numbers(RunOp("reprise.DequantizeBits", {U8({1}, {0x39}), F32({1, 1}, {1})}, Bits(4, 2, 4))),
      ElementsAre(-1, 0, 1, -2));
  EXPECT_THAT(Numbers(RunOp("reprise.DequantizeBits", {U8({2}, {130, 0}), F32({1, 1}, {0.5f})},
                            Bits(2, 8, 2))),
              ElementsAre(1, -64));
}

TEST(QuantizeTest, DequantizeBitsScalesBlocksOfEachRow) {
  // Two rows of three blocks, the last of which is half empty.
  const Tensor values = U8({2, 3, 1}, {0x21, 0x43, 0xF5, 0x65, 0x87, 0xF9});
  const Tensor scales = F32({2, 3}, {1, 10, 100, 2, 20, 200});
  EXPECT_THAT(Numbers(RunOp("reprise.DequantizeBits", {values, scales, U8({4}, {0x10, 2, 0x10, 2})},
                            Bits(5, 4, 2))),
              ElementsAre(1, 2, 20, 30, 300, 10, 12, 120, 140, 1400));
  EXPECT_THAT(Numbers(RunOp("reprise.DequantizeBits",
                            {values, scales, F32({2, 3}, {0, 1, 2, 0, 1, 2})}, Bits(5, 4, 2))),
              ElementsAre(1, 2, 20, 30, 300, 10, 12, 120, 140, 1400));
}

TEST(QuantizeTest, DequantizeBitsNamesWhatDoesNotFit) {
  const auto error = [](const OptionalTensors& inputs, const Attributes& attributes) {
    return std::string(RunOp("reprise.DequantizeBits", inputs, attributes).status().message());
  };
  EXPECT_THAT(error({U8({3}, {0, 0, 0}), F32({1, 1}, {1})}, Bits(2, 4, 2)),
              HasSubstr("3 bytes of values for 1 rows of 2 values"));
  EXPECT_THAT(error({U8({1}, {0}), F32({1, 2}, {1, 1})}, Bits(2, 4, 2)),
              HasSubstr("their last dim is not 1 blocks"));
  EXPECT_THAT(error({U8({1}, {0}), F32({1, 1}, {1}), U8({2}, {0, 0})}, Bits(2, 4, 2)),
              HasSubstr("2 bytes of zero points, expected 1"));
  EXPECT_THAT(error({U8({1}, {0}), F32({1, 1}, {1})}, Bits(2, 5, 2)),
              HasSubstr("5 bits are not supported"));
}

}  // namespace
}  // namespace reprise
