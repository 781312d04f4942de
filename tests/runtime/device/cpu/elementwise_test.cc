#include "runtime/device/cpu/elementwise.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Floats dense in [low, high], and as many spread evenly over the exponents in it.
std::vector<float> Sweep(float low, float high) {
  std::vector<float> x;
  constexpr int kSteps = 200000;
  for (int i = 0; i <= kSteps; ++i) {
    x.push_back(static_cast<float>(low + (static_cast<double>(high) - low) * i / kSteps));
  }
  for (float magnitude = std::max(std::abs(low), std::abs(high)); magnitude > 1e-38f;
       magnitude *= 0.9993f) {
    if (magnitude >= low && magnitude <= high) x.push_back(magnitude);
    if (-magnitude >= low && -magnitude <= high) x.push_back(-magnitude);
  }
  return x;
}

class ElementwiseTest : public testing::TestWithParam<Isa> {
 protected:
  const ElementwiseKernels& kernels() const { return ElementwiseKernelsFor(GetParam()); }
  // The largest |ours - exact| / scale(x, exact) over x.
  template <class Exact, class Scale>
  double WorstError(Unary op, const std::vector<float>& x, Exact exact, Scale scale) const {
    std::vector<float> y(x.size());
    kernels().unary(op)(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = exact(static_cast<double>(x[i]));
      const double error = std::abs(y[i] - want) / scale(x[i], want);
      // NaN counts as the largest error.
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }
  float One(Unary op, float x) const {
    float y;
    kernels().unary(op)(&x, &y, 1);
    return y;
  }
};

double Relative(double, double exact) { return std::max(std::abs(exact), 1e-37); }
double AtLeastOne(double x, double) { return std::max(std::abs(x), 1.0); }

TEST_P(ElementwiseTest, ExpIsExactToTwoUlps) {
  EXPECT_LE(WorstError(
                Unary::kExp, Sweep(-87, 88.7f), [](double x) { return std::exp(x); }, Relative),
            2.4e-7);
  // Gradual underflow: absolute error of the smallest steps.
  EXPECT_LE(WorstError(
                Unary::kExp, Sweep(-110, -87), [](double x) { return std::exp(x); },
                [](double, double) { return 1.0; }),
            2e-44);
  EXPECT_EQ(One(Unary::kExp, 0), 1.0f);
  EXPECT_EQ(One(Unary::kExp, 89), kInf);
  EXPECT_EQ(One(Unary::kExp, kInf), kInf);
  EXPECT_EQ(One(Unary::kExp, -kInf), 0.0f);
}

TEST_P(ElementwiseTest, TanhErrorIsBounded) {
  EXPECT_LE(WorstError(
                Unary::kTanh, Sweep(-12, 12), [](double x) { return std::tanh(x); }, Relative),
            3e-7);
  EXPECT_EQ(One(Unary::kTanh, kInf), 1.0f);
  EXPECT_EQ(One(Unary::kTanh, -kInf), -1.0f);
}

TEST_P(ElementwiseTest, SigmoidErrorIsBounded) {
  EXPECT_LE(WorstError(
                Unary::kSigmoid, Sweep(-87, 30), [](double x) { return 1 / (1 + std::exp(-x)); },
                Relative),
            3e-7);
  EXPECT_EQ(One(Unary::kSigmoid, kInf), 1.0f);
  EXPECT_EQ(One(Unary::kSigmoid, -kInf), 0.0f);
}

TEST_P(ElementwiseTest, ErfErrorIsBounded) {
  EXPECT_LE(WorstError(
                Unary::kErf, Sweep(-6, 6), [](double x) { return std::erf(x); }, Relative),
            3e-7);
  EXPECT_EQ(One(Unary::kErf, kInf), 1.0f);
  EXPECT_EQ(One(Unary::kErf, -kInf), -1.0f);
}

TEST_P(ElementwiseTest, GeluErrorIsBounded) {
  const auto exact = [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); };
  EXPECT_LE(WorstError(Unary::kGelu, Sweep(-20, 20), exact, AtLeastOne), 1.2e-7);
  // Negative arguments keep their digits, which 1 + erf(x) would lose.
  EXPECT_LE(WorstError(Unary::kGelu, Sweep(-3, 0), exact, Relative), 2e-6);
  EXPECT_EQ(One(Unary::kGelu, 1e30f), 1e30f);
  EXPECT_EQ(One(Unary::kGelu, -1e30f), 0.0f);
}

TEST_P(ElementwiseTest, GeluTanhAndSiluErrorsAreBounded) {
  EXPECT_LE(WorstError(
                Unary::kGeluTanh, Sweep(-20, 20),
                [](double x) {
                  return 0.5 * x *
                         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
                },
                AtLeastOne),
            3e-7);
  EXPECT_LE(WorstError(
                Unary::kSilu, Sweep(-80, 80), [](double x) { return x / (1 + std::exp(-x)); },
                AtLeastOne),
            3e-7);
}

TEST_P(ElementwiseTest, NanStaysNan) {
  for (Unary op : {Unary::kCopy, Unary::kSqrt, Unary::kReciprocal, Unary::kFloor, Unary::kExp,
                   Unary::kTanh, Unary::kSigmoid, Unary::kErf, Unary::kRelu, Unary::kGelu,
                   Unary::kGeluTanh, Unary::kSilu, Unary::kSquare}) {
    EXPECT_TRUE(std::isnan(One(op, NAN))) << static_cast<int>(op);
  }
  float nan = NAN, one = 1, y;
  for (Binary op : {Binary::kMax, Binary::kMin}) {
    kernels().binary(op, cpu::Run::kBoth)(&nan, &one, &y, 1);
    EXPECT_TRUE(std::isnan(y));
    kernels().binary(op, cpu::Run::kBoth)(&one, &nan, &y, 1);
    EXPECT_TRUE(std::isnan(y));
  }
  kernels().clip(&nan, 0, 1, &y, 1);
  EXPECT_TRUE(std::isnan(y));
}

TEST_P(ElementwiseTest, SimpleFunctionsAreExact) {
  const std::vector<float> x = Sweep(-9, 9);
  const auto check = [&](Unary op, double (*exact)(double)) {
    EXPECT_EQ(WorstError(
                  op, x, [&](double v) { return static_cast<float>(exact(v)); },
                  [](double, double) { return 1.0; }),
              0)
        << static_cast<int>(op);
  };
  check(Unary::kCopy, [](double v) { return v; });
  check(Unary::kNeg, [](double v) { return -v; });
  check(Unary::kAbs, [](double v) { return std::abs(v); });
  check(Unary::kFloor, [](double v) { return std::floor(v); });
  check(Unary::kCeil, [](double v) { return std::ceil(v); });
  check(Unary::kRound, [](double v) { return std::nearbyint(v); });
  check(Unary::kRelu, [](double v) { return v > 0 ? v : 0; });
  check(Unary::kSquare, [](double v) { return v * v; });
  EXPECT_EQ(One(Unary::kSqrt, 2), std::sqrt(2.0f));
  EXPECT_EQ(One(Unary::kReciprocal, 3), 1 / 3.0f);
}

TEST_P(ElementwiseTest, BinaryRunsEqualPlainLoopAndStayInside) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (int64_t count : {0, 1, 2, 7, 8, 15, 16, 17, 33, 100}) {
    std::vector<float> a(count + 1), b(count + 1);
    for (float& x : a) x = uniform(random);
    for (float& x : b) x = uniform(random);
    for (cpu::Run run : {cpu::Run::kBoth, cpu::Run::kScalarA, cpu::Run::kScalarB}) {
      for (int op = 0; op <= static_cast<int>(Binary::kAddGeluTanh); ++op) {
        std::vector<float> y(count + 1, 99.0f);
        kernels().binary(static_cast<Binary>(op), run)(a.data(), b.data(), y.data(), count);
        EXPECT_EQ(y[count], 99.0f);
        for (int64_t i = 0; i < count; ++i) {
          const double x = a[run == cpu::Run::kScalarA ? 0 : i],
                       z = b[run == cpu::Run::kScalarB ? 0 : i];
          const double s = static_cast<float>(x + z);
          const double expected[] = {
              s,
              x - z,
              x * z,
              x / z,
              std::max(x, z),
              std::min(x, z),
              0.5 * s * std::erfc(-s / std::sqrt(2.0)),
              0.5 * s * (1 + std::tanh(std::sqrt(2 / M_PI) * (s + 0.044715 * s * s * s)))};
          ASSERT_NEAR(y[i], expected[op], 3e-7 * std::max(1.0, std::abs(expected[op])) + 3e-7)
              << "op " << op;
        }
      }
    }
  }
}

TEST_P(ElementwiseTest, ClipBoundsBothSides) {
  std::vector<float> x = Sweep(-4, 4), y(x.size());
  kernels().clip(x.data(), -1, 2, y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], std::min(std::max(x[i], -1.0f), 2.0f));
}

INSTANTIATE_TEST_SUITE_P(Tiers, ElementwiseTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
