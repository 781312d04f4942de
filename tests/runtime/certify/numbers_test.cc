#include "runtime/certify/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor FloatTensor(Shape shape, const std::vector<float>& values) {
  return Tensor::FromVector(DType::kFloat32, std::move(shape), values);
}

TEST(NumbersTest, EveryDTypeGoesBothWays) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                      DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32,
                      DType::kUInt32, DType::kInt64, DType::kUInt64, DType::kBool}) {
    const Numbers numbers = {dtype, {2}, {0, 1}};
    const Numbers back = FromTensor(ToTensor(numbers));
    EXPECT_EQ(back.dtype, dtype);
    EXPECT_EQ(back.shape, numbers.shape);
    EXPECT_EQ(back.values, numbers.values);
  }
}

TEST(NumbersTest, ValuesOutsideTheDTypeAreClamped) {
  EXPECT_THAT(FromTensor(ToTensor({DType::kInt8, {3}, {1000, -1000, 5}})).values,
              ElementsAre(127, -128, 5));
  EXPECT_THAT(FromTensor(ToTensor({DType::kUInt64, {1}, {-3}})).values, ElementsAre(0));
  EXPECT_THAT(FromTensor(ToTensor({DType::kFloat16, {1}, {1e9}})).values, ElementsAre(65504));
}

TEST(NumbersTest, PasteFillsABox) {
  Numbers target = {DType::kFloat32, {2, 3}, {0, 0, 0, 0, 0, 0}};
  Paste({DType::kFloat32, {1, 2}, {7, 8}}, {1, 1}, target);
  EXPECT_THAT(target.values, ElementsAre(0, 0, 0, 0, 7, 8));
  Numbers scalar = {DType::kFloat32, {}, {0}};
  Paste({DType::kFloat32, {}, {5}}, {}, scalar);
  EXPECT_THAT(scalar.values, ElementsAre(5));
  Paste({DType::kFloat32, {0, 2}, {}}, {1, 0}, target);  // nothing
  EXPECT_THAT(target.values, ElementsAre(0, 0, 0, 0, 7, 8));
}

TEST(DifferTest, ComparesTheBoxAlone) {
  const Tensor expected = FloatTensor({2, 1}, {1, 2});
  const Tensor actual = FloatTensor({2, 3}, {9, 1, 9, 9, 2, 9});
  EXPECT_EQ(Differ(expected, actual, {0, 1}, 0), std::nullopt);
  EXPECT_THAT(*Differ(expected, actual, {0, 0}, 0), HasSubstr("at [0, 0]: 1 against 9"));
}

TEST(DifferTest, ToleranceIsOfTheLargestElement) {
  const Tensor expected = FloatTensor({2}, {100, 1});
  EXPECT_EQ(Differ(expected, FloatTensor({2}, {100, 1.0009f}), {0}, 1e-5), std::nullopt);
  EXPECT_THAT(*Differ(expected, FloatTensor({2}, {100, 1.01f}), {0}, 1e-5),
              HasSubstr("at [1]: 1 against 1.01"));
}

TEST(DifferTest, AScoreNextToZeroIsMeasuredByWhatScoresUsuallyAre) {
  const Tensor expected = FloatTensor({1}, {0.00150964f});
  const Tensor actual = FloatTensor({1}, {0.00150991f});
  EXPECT_NE(Differ(expected, actual, {0}, 1e-5), std::nullopt);
  EXPECT_EQ(Differ(expected, actual, {0}, 1e-5, /*usual=*/0.5), std::nullopt);
  EXPECT_NE(Differ(expected, FloatTensor({1}, {0.0016f}), {0}, 1e-5, /*usual=*/0.5), std::nullopt);
  // Their own size where that is more.
  EXPECT_EQ(Differ(FloatTensor({1}, {100}), FloatTensor({1}, {100.0009f}), {0}, 1e-5, 0.5),
            std::nullopt);
}

TEST(UsualSizeTest, OneOutputOfAnotherSizeChangesNothing) {
  EXPECT_EQ(UsualSize({}), 0);
  EXPECT_EQ(UsualSize({0.5, 1e9, 0.4, 0.6, 0.001}), 0.5);
  EXPECT_EQ(LargestOf(FloatTensor({3}, {-2, 1, std::numeric_limits<float>::infinity()})), 2);
}

TEST(DifferTest, IntegersAreExact) {
  const Tensor expected = Tensor::Int64s({1000000, 5});
  EXPECT_EQ(Differ(expected, Tensor::Int64s({1000000, 5}), {0}, 1e-5), std::nullopt);
  EXPECT_NE(Differ(expected, Tensor::Int64s({1000000, 6}), {0}, 1e-5), std::nullopt);
}

TEST(DifferTest, NanEqualsNanAndInfinityItself) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const Tensor expected = FloatTensor({3}, {nan, inf, 1});
  EXPECT_EQ(Differ(expected, FloatTensor({3}, {nan, inf, 1}), {0}, 1e-5), std::nullopt);
  EXPECT_NE(Differ(expected, FloatTensor({3}, {1, inf, 1}), {0}, 1e-5), std::nullopt);
  EXPECT_NE(Differ(expected, FloatTensor({3}, {nan, -inf, 1}), {0}, 1e-5), std::nullopt);
  EXPECT_NE(Differ(expected, FloatTensor({3}, {nan, 1, 1}), {0}, 1e-5), std::nullopt);
  EXPECT_NE(Differ(expected, FloatTensor({3}, {nan, inf, nan}), {0}, 1e-5), std::nullopt);
}

TEST(DifferTest, TheWorstElementIsNamed) {
  EXPECT_THAT(*Differ(FloatTensor({3}, {1, 1, 1}), FloatTensor({3}, {2, 5, 3}), {0}, 1e-5),
              HasSubstr("at [1]: 1 against 5, off by 4"));
}

}  // namespace
}  // namespace reprise
