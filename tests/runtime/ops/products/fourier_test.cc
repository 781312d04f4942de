#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

using Complex = std::complex<double>;

const Attributes kInverse = {{"inverse", int64_t{1}}};
const Attributes kOnesided = {{"onesided", int64_t{1}}};
const Attributes kReal = {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}};

// Returns numbers that no symmetry makes right by chance.
std::vector<double> Signal(int64_t count) {
  std::vector<double> x;
  for (int64_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i);
    x.push_back(std::sin(at * at * 0.37) + 0.01 * at);
  }
  return x;
}

Tensor F64(Shape shape, const std::vector<double>& values) {
  return Tensor::FromVector(DType::kFloat64, std::move(shape), values);
}

// Computes the definition, of `length` numbers of `x`, those past its end 0.
std::vector<double> Sums(const std::vector<Complex>& x, int64_t length, bool inverse) {
  std::vector<double> y;
  for (int64_t k = 0; k < length; ++k) {
    Complex sum;
    for (int64_t i = 0; i < std::min<int64_t>(length, x.size()); ++i) {
      const double turns = static_cast<double>(k * i % length) / static_cast<double>(length);
      sum += x[i] * std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * turns);
    }
    if (inverse) sum /= static_cast<double>(length);
    y.push_back(sum.real());
    y.push_back(sum.imag());
  }
  return y;
}

TEST(FourierTest, AnyLengthIsTheSumOfItsWaves) {
  for (const int64_t length : {1, 2, 3, 5, 8, 12, 17, 64, 97, 100, 128, 211}) {
    const std::vector<double> x = Signal(2 * length);
    std::vector<Complex> numbers;
    for (int64_t i = 0; i < length; ++i) numbers.emplace_back(x[2 * i], x[2 * i + 1]);
    const Tensor signal = F64({length, 2}, x);
    ExpectNear(Numbers(RunOp("DFT", {signal})), Sums(numbers, length, false), 1e-11);
    ExpectNear(Numbers(RunOp("DFT", {signal}, kInverse)), Sums(numbers, length, true), 1e-11);
  }
}

TEST(FourierTest, ALongTransformOfAPrimeLengthIsFast) {
  constexpr int64_t kLength = 100003;
  const std::vector<double> x = Signal(kLength);
  const auto there = RunOp("DFT", {F64({kLength, 1}, x)}, {}, 1, 1 << 23);
  ASSERT_TRUE(there.ok()) << there.status();
  const std::vector<double> back = Numbers(RunOp("DFT", {(*there)[0]}, kInverse, 1, 1 << 23));
  for (int64_t i = 0; i < kLength; i += 997) ASSERT_NEAR(back[2 * i], x[i], 1e-9) << i;
}

TEST(FourierTest, SignalsAreCutOrFilledToTheLength) {
  const std::vector<double> x = Signal(7);
  const std::vector<Complex> numbers(x.begin(), x.end());
  for (const int64_t length : {4, 7, 11}) {
    const auto result = RunOp("DFT", {F64({7, 1}, x), I64({}, {length})});
    EXPECT_EQ(ShapeOf(result), (Shape{length, 2}));
    std::vector<Complex> used = numbers;
    if (length < 7) used.resize(length);
    ExpectNear(Numbers(result), Sums(used, length, false), 1e-12);
  }
}

TEST(FourierTest, AxesAreTransformedEachByItself) {
  const std::vector<double> x = Signal(2 * 3 * 4);
  const auto result = RunOp("DFT", {F64({2, 3, 4, 1}, x), std::nullopt, I64({}, {1})});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 3, 4, 2}));
  const std::vector<double> y = Numbers(result);
  for (int64_t outer = 0; outer < 2; ++outer) {
    for (int64_t inner = 0; inner < 4; ++inner) {
      std::vector<Complex> column;
      for (int64_t k = 0; k < 3; ++k) column.emplace_back(x[(outer * 3 + k) * 4 + inner]);
      const std::vector<double> want = Sums(column, 3, false);
      for (int64_t k = 0; k < 3; ++k) {
        EXPECT_NEAR(y[((outer * 3 + k) * 4 + inner) * 2], want[2 * k], 1e-12);
        EXPECT_NEAR(y[((outer * 3 + k) * 4 + inner) * 2 + 1], want[2 * k + 1], 1e-12);
      }
    }
  }
}

TEST(FourierTest, TheRealSignalComesBackFromHalfOfItsSpectrum) {
  for (const int64_t length : {1, 2, 7, 8, 12}) {
    const std::vector<double> x = Signal(length);
    const auto half = RunOp("DFT", {F64({1, length, 1}, x)}, kOnesided);
    EXPECT_EQ(ShapeOf(half), (Shape{1, length / 2 + 1, 2}));
    const auto back = RunOp("DFT", {(*half)[0], I64({}, {length})}, kReal);
    EXPECT_EQ(ShapeOf(back), (Shape{1, length, 1}));
    ExpectNear(Numbers(back), x, 1e-12);
  }
  EXPECT_EQ(ShapeOf(RunOp("DFT", {F64({5, 2}, Signal(10))}, kReal)), (Shape{8, 1}));
}

TEST(FourierTest, HalvesAreComputedInDouble) {
  std::vector<uint16_t> bits;
  for (int i = 0; i < 64; ++i) bits.push_back(FloatToHalf(1));
  const auto result = RunOp("DFT", {Tensor::FromVector(DType::kFloat16, {64, 1}, bits)});
  EXPECT_EQ((*result)[0].dtype(), DType::kFloat16);
  EXPECT_EQ(Numbers(result)[0], 64);
}

TEST(FourierTest, WhatIsNoTransformIsRefusedWithItsNumbers) {
  const Tensor x = F64({2, 4, 1}, Signal(8));
  EXPECT_THAT(ErrorOf(RunOp("DFT", {F64({2, 4, 3}, Signal(24))})), HasSubstr("3 parts and rank 3"));
  EXPECT_THAT(ErrorOf(RunOp("DFT", {x, std::nullopt, I64({}, {2})})), HasSubstr("axis 2"));
  EXPECT_THAT(ErrorOf(RunOp("DFT", {x, std::nullopt, I64({}, {-1})})), HasSubstr("axis -1"));
  EXPECT_THAT(ErrorOf(RunOp("DFT", {x, I64({}, {0})})), HasSubstr("length 0"));
  EXPECT_THAT(ErrorOf(RunOp("DFT", {F64({2, 2}, Signal(4))}, kOnesided)),
              HasSubstr("one-sided transform of complex numbers"));
}

}  // namespace
}  // namespace reprise
