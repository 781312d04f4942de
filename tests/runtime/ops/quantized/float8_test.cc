#include "runtime/ops/quantized/float8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ops::Float8;
using ops::FromFloat8;
using ops::ToFloat8;

constexpr Float8 kForms[] = {Float8::kE4M3FN, Float8::kE4M3FNUZ, Float8::kE5M2, Float8::kE5M2FNUZ};

TEST(Float8Test, BitsAreTheNumbersOfTheirForm) {
  // 1, the largest, the smallest above 0, and NaN.
  EXPECT_EQ(FromFloat8(Float8::kE4M3FN, 0x38), 1);
  EXPECT_EQ(FromFloat8(Float8::kE4M3FN, 0x7e), 448);
  EXPECT_EQ(FromFloat8(Float8::kE4M3FN, 0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(FromFloat8(Float8::kE4M3FN, 0xff)));
  EXPECT_EQ(FromFloat8(Float8::kE4M3FNUZ, 0x40), 1);
  EXPECT_EQ(FromFloat8(Float8::kE4M3FNUZ, 0xff), -240);
  EXPECT_EQ(FromFloat8(Float8::kE4M3FNUZ, 0x01), 0x1p-10f);
  EXPECT_TRUE(std::isnan(FromFloat8(Float8::kE4M3FNUZ, 0x80)));
  EXPECT_EQ(FromFloat8(Float8::kE5M2, 0x3c), 1);
  EXPECT_EQ(FromFloat8(Float8::kE5M2, 0x7b), 57344);
  EXPECT_EQ(FromFloat8(Float8::kE5M2, 0xfc), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(FromFloat8(Float8::kE5M2, 0x7d)));
  EXPECT_EQ(FromFloat8(Float8::kE5M2FNUZ, 0x40), 1);
  EXPECT_EQ(FromFloat8(Float8::kE5M2FNUZ, 0x7f), 57344);
  EXPECT_TRUE(std::isnan(FromFloat8(Float8::kE5M2FNUZ, 0x80)));
}

TEST(Float8Test, EveryNumberIsItselfAgain) {
  for (const Float8 form : kForms) {
    for (int bits = 0; bits < 256; ++bits) {
      const float value = FromFloat8(form, static_cast<uint8_t>(bits));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(FromFloat8(form, ToFloat8(form, value, true))));
      } else {
        EXPECT_EQ(ToFloat8(form, value, false), bits) << static_cast<int64_t>(form);
      }
    }
  }
}

TEST(Float8Test, HalvesGoToTheEvenOne) {
  EXPECT_EQ(FromFloat8(Float8::kE4M3FN, ToFloat8(Float8::kE4M3FN, 1.0625f, true)), 1);
  EXPECT_EQ(FromFloat8(Float8::kE4M3FN, ToFloat8(Float8::kE4M3FN, 1.1875f, true)), 1.25f);
  EXPECT_EQ(FromFloat8(Float8::kE5M2, ToFloat8(Float8::kE5M2, -1.125f, true)), -1);
  EXPECT_EQ(ToFloat8(Float8::kE4M3FN, 0x1p-10f, true), 0);
  EXPECT_EQ(ToFloat8(Float8::kE4M3FN, 0x1.8p-10f, true), 1);
  // A carry reaches the next binade, and the largest is the nearest up to half a step beyond it.
  EXPECT_EQ(FromFloat8(Float8::kE4M3FN, ToFloat8(Float8::kE4M3FN, 1.99f, true)), 2);
  EXPECT_EQ(ToFloat8(Float8::kE4M3FN, 464, false), 0x7e);
}

TEST(Float8Test, WhatIsTooLargeSaturatesOrDoesNot) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float large : {470.0f, 1e6f, infinity}) {
    EXPECT_EQ(ToFloat8(Float8::kE4M3FN, large, true), 0x7e);
    EXPECT_EQ(ToFloat8(Float8::kE4M3FN, -large, false), 0xff);
    EXPECT_EQ(ToFloat8(Float8::kE4M3FNUZ, -large, true), 0xff);
    EXPECT_EQ(ToFloat8(Float8::kE4M3FNUZ, large, false), 0x80);
  }
  EXPECT_EQ(ToFloat8(Float8::kE5M2, infinity, true), 0x7b);
  EXPECT_EQ(ToFloat8(Float8::kE5M2, -1e6f, false), 0xfc);
  EXPECT_EQ(ToFloat8(Float8::kE5M2FNUZ, 1e6f, false), 0x80);
  EXPECT_EQ(ToFloat8(Float8::kE4M3FN, -0.0f, true), 0x80);
  EXPECT_EQ(ToFloat8(Float8::kE4M3FNUZ, -0.0f, true), 0);
}

TEST(Float8Test, ScalesOfAllOfAnAxisAndOfBlocks) {
  const auto dequantized = [](Shape shape, std::vector<float> scales, Attributes attributes) {
    attributes.Set("form", static_cast<int64_t>(Float8::kE4M3FN));
    // 1, 2, 4, 8
    return Numbers(RunOp("reprise.DequantizeFloat8",
                         {U8({2, 2}, {0x38, 0x40, 0x48, 0x50}), F32(shape, scales)}, attributes));
  };
  EXPECT_THAT(dequantized({}, {3}, {}), ElementsAre(3, 6, 12, 24));
  EXPECT_THAT(dequantized({2}, {1, 10}, {{"axis", int64_t{0}}}), ElementsAre(1, 2, 40, 80));
  EXPECT_THAT(dequantized({2, 1}, {1, 10}, {{"block_size", int64_t{2}}, {"axis", int64_t{1}}}),
              ElementsAre(1, 2, 40, 80));
  const auto quantized =
      RunOp("reprise.QuantizeFloat8", {F32({2, 2}, {3, 20, 1e9f, 0}), F32({2}, {3, 10})},
            {{"axis", int64_t{1}}, {"form", static_cast<int64_t>(Float8::kE4M3FN)}});
  EXPECT_THAT(Numbers(quantized), ElementsAre(0x38, 0x40, 0x7e, 0));
}

TEST(Float8Test, AnotherDTypeIsNoForm) {
  EXPECT_THAT(ErrorOf(RunOp("reprise.FromFloat8", {U8({1}, {1})}, {{"form", int64_t{1}}})),
              HasSubstr("dtype 1 is not a float of eight bits"));
}

}  // namespace
}  // namespace reprise
