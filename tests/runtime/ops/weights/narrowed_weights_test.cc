#include "runtime/ops/weights/narrowed_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/ops/kit/onnx_types.h"

namespace reprise::ops {
namespace {

constexpr int64_t kRows = 128, kColumns = 150;

Tensor Matrix(const std::vector<float>& values, Shape shape = {kRows, kColumns}) {
  return Tensor::Make(DType::kFloat32, shape, [&](void* data) {
    std::memcpy(data, values.data(), values.size() * sizeof(float));
  });
}

template <class Round>
std::vector<float> Rounded(const Round& round) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> values(kRows * kColumns);
  for (float& value : values) value = round(normal(random));
  return values;
}

float ToFloat16(float value) { return HalfToFloat(FloatToHalf(value)); }
float ToBFloat16(float value) { return BFloat16ToFloat(FloatToBFloat16(value)); }

TEST(HalfThatHoldsTest, NamesTheHalfThatHasEveryNumber) {
  std::vector<float> bfloat16 = Rounded(ToBFloat16), float16 = Rounded(ToFloat16);
  // 2^-24, the smallest of float16, its largest, both zeros and an infinity.
  float16[7] = 0x1p-24f;
  float16[8] = -0x3p-24f;
  float16[9] = 65504;
  float16[10] = -0.0f;
  float16[kRows * kColumns - 1] = std::numeric_limits<float>::infinity();
  bfloat16[5] = 1e30f;
  bfloat16[5] = ToBFloat16(bfloat16[5]);
  EXPECT_EQ(HalfThatHolds(Matrix(bfloat16)), DType::kBFloat16);
  EXPECT_EQ(HalfThatHolds(Matrix(float16)), DType::kFloat16);
}

TEST(HalfThatHoldsTest, OneNumberThatItHasNotIsEnough) {
  const std::vector<float> bfloat16 = Rounded(ToBFloat16), float16 = Rounded(ToFloat16);
  for (const size_t at : {size_t{0}, size_t{1023}, size_t{1024}, float16.size() - 1}) {
    std::vector<float> values = bfloat16;
    values[at] = 1.001f;
    EXPECT_EQ(HalfThatHolds(Matrix(values)), DType::kUndefined) << at;
    // One bit too many, too large, between two of the smallest.
    for (const float lost : {1 + 0x1p-11f, 65536.0f, 0x1.8p-24f, 0x1.001p-15f}) {
      values = float16;
      values[at] = lost;
      EXPECT_EQ(HalfThatHolds(Matrix(values)), DType::kUndefined) << at << " " << lost;
    }
  }
}

TEST(HalfThatHoldsTest, OnlyMatricesThatAreWorthIt) {
  const std::vector<float> values = Rounded(ToBFloat16);
  EXPECT_EQ(HalfThatHolds(Matrix(values, {kRows * kColumns})), DType::kUndefined);
  EXPECT_EQ(HalfThatHolds(Matrix(values, {2, kRows / 2, kColumns})), DType::kUndefined);
  const std::vector<float> few(values.begin(), values.begin() + 100 * 100);
  EXPECT_EQ(HalfThatHolds(Matrix(few, {100, 100})), DType::kUndefined);
}

TEST(NarrowedTest, WithoutTheMarkItIsWhatItWas) {
  const Shape shape = {kRows, kColumns};
  const ParameterExprPtr leaf = ParameterExpr::Leaf(3, DType::kFloat32, shape);
  const ParameterExprPtr marked = Narrowed(leaf, DType::kFloat16);
  EXPECT_EQ(marked->dtype(), DType::kFloat32);
  EXPECT_EQ(marked->shape(), shape);
  const ParameterExpr& halves = *marked->inputs()[0];
  EXPECT_TRUE(IsNarrowing(halves.op(), halves.attributes()));
  EXPECT_EQ(halves.dtype(), DType::kFloat16);
  EXPECT_EQ(WithoutNarrowing(marked), leaf);
  const auto turned = [&](const ParameterExprPtr& of) {
    return ParameterExpr::Apply("Transpose", {}, {of}, DType::kFloat32, {kColumns, kRows});
  };
  EXPECT_EQ(WithoutNarrowing(turned(marked))->text(), turned(leaf)->text());
  // Nothing is made again where there is no mark: neither halves nor results of a model's own Cast.
  EXPECT_EQ(WithoutNarrowing(turned(leaf))->text(), turned(leaf)->text());
  const ParameterExprPtr rounded =
      ParameterExpr::Apply("Cast", {{"to", OnnxNumber(DType::kFloat32)}},
                           {ParameterExpr::Apply("Cast", {{"to", OnnxNumber(DType::kFloat16)}},
                                                 {leaf}, DType::kFloat16, shape)},
                           DType::kFloat32, shape);
  EXPECT_EQ(WithoutNarrowing(rounded), rounded);
  EXPECT_EQ(WithoutNarrowing(marked->inputs()[0]), marked->inputs()[0]);
}

}  // namespace
}  // namespace reprise::ops
