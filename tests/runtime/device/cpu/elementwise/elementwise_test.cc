#include "runtime/device/cpu/elementwise/elementwise.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Returns floats dense in [low, high], and the same number spread evenly over the exponents in it.
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
  // Returns the largest |ours - exact| / scale(x, exact) over x.
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

// A file that halves last makes twice of a number on the way.
TEST_P(ElementwiseTest, AGeluThatDoublesEndsAboveHalfOfTheLargestNumber) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const float above_half = std::nextafter(kLargest / 2, kLargest);
  for (const Unary op : {Unary::kGelu, Unary::kGeluTanh}) {
    for (const float x : {kLargest, above_half, kLargest / 2, 20.0f}) EXPECT_EQ(One(op, x), x);
    EXPECT_EQ(One(op, kInf), kInf);
    EXPECT_TRUE(std::isnan(One(op, -kInf)));
    EXPECT_EQ(One(op, -kLargest), 0);
  }
  for (const Unary op : {Unary::kGeluDoubled, Unary::kGeluTanhDoubled}) {
    for (const float x : {kInf, kLargest, above_half}) EXPECT_EQ(One(op, x), kInf);
    for (const float x : {kLargest / 2, 20.0f}) EXPECT_EQ(One(op, x), x);
    EXPECT_TRUE(std::isnan(One(op, -kInf)));
    EXPECT_TRUE(std::isnan(One(op, std::nanf(""))));
    EXPECT_EQ(One(op, -kLargest), 0);
    const Unary plain = op == Unary::kGeluDoubled ? Unary::kGelu : Unary::kGeluTanh;
    for (float x = -9; x < 9; x += 0.37f) EXPECT_EQ(One(op, x), One(plain, x));
  }
}

TEST_P(ElementwiseTest, APowerOfOneHalfIsInfiniteForMinusInfinity) {
  EXPECT_EQ(One(Unary::kRootPower, -kInf), kInf);
  EXPECT_EQ(One(Unary::kRootPower, kInf), kInf);
  EXPECT_EQ(One(Unary::kRootPower, 9), 3);
  EXPECT_TRUE(std::isnan(One(Unary::kRootPower, -9)));
  EXPECT_FALSE(std::signbit(One(Unary::kRootPower, -0.0f)));
}

TEST_P(ElementwiseTest, LogErrorIsBounded) {
  const auto log = [](double x) { return std::log(x); };
  EXPECT_LE(WorstError(Unary::kLog, Sweep(1e-38f, 30), log, Relative), 2e-7);
  EXPECT_LE(WorstError(Unary::kLog, Sweep(0.9f, 1.1f), log, Relative), 2e-7);
  EXPECT_LE(WorstError(Unary::kLog, {1e-39f, 1e-42f, 1e-45f, 3.4e38f, 1e20f}, log, Relative), 2e-7);
  EXPECT_EQ(One(Unary::kLog, 1), 0.0f);
  EXPECT_EQ(One(Unary::kLog, 0.0f), -kInf);
  EXPECT_EQ(One(Unary::kLog, -0.0f), -kInf);
  EXPECT_EQ(One(Unary::kLog, kInf), kInf);
  EXPECT_TRUE(std::isnan(One(Unary::kLog, -1e-40f)));
  EXPECT_TRUE(std::isnan(One(Unary::kLog, -kInf)));
}

TEST_P(ElementwiseTest, SinesAndTangentsErrorsAreBounded) {
  const auto absolute = [](double, double) { return 1.0; };
  for (const float most : {4.0f, 3000.0f, 2e5f, 9e7f, 1e12f}) {
    SCOPED_TRACE(most);
    const std::vector<float> x = Sweep(-most, most);
    const auto sine = [](double v) { return std::sin(v); };
    const auto cosine = [](double v) { return std::cos(v); };
    EXPECT_LE(WorstError(Unary::kSin, x, sine, absolute), 1e-7);
    EXPECT_LE(WorstError(Unary::kCos, x, cosine, absolute), 1e-7);
    EXPECT_LE(WorstError(Unary::kSin, x, sine, Relative), 3e-7);
    EXPECT_LE(WorstError(Unary::kCos, x, cosine, Relative), 3e-7);
    EXPECT_LE(WorstError(
                  Unary::kTan, x, [](double v) { return std::tan(v); }, Relative),
              4e-7);
  }
  for (Unary op : {Unary::kSin, Unary::kCos, Unary::kTan}) {
    EXPECT_TRUE(std::isnan(One(op, kInf)));
    EXPECT_TRUE(std::isnan(One(op, -kInf)));
  }
}

// A token's rotary angles lie in one vector with other tokens'.
TEST_P(ElementwiseTest, NeighboursChangeNoBit) {
  for (Unary op : {Unary::kSin, Unary::kCos, Unary::kTan, Unary::kExp, Unary::kTanh, Unary::kErf,
                   Unary::kSigmoid, Unary::kSilu, Unary::kGelu, Unary::kLog}) {
    for (const float beside : {1e20f, kInf, std::nanf(""), 0.0f}) {
      std::vector<float> x(64, beside), y(64);
      for (size_t i = 0; i < x.size(); i += 2) x[i] = 0.37f * static_cast<float>(i + 1);
      kernels().unary(op)(x.data(), y.data(), static_cast<int64_t>(x.size()));
      for (size_t i = 0; i < x.size(); i += 2) {
        EXPECT_EQ(y[i], One(op, x[i])) << static_cast<int>(op) << " beside " << beside;
      }
    }
  }
}

TEST_P(ElementwiseTest, InverseSinesAndTangentsErrorsAreBounded) {
  const std::vector<float> inside = Sweep(-1, 1);
  EXPECT_LE(WorstError(
                Unary::kAsin, inside, [](double x) { return std::asin(x); }, Relative),
            3e-7);
  EXPECT_LE(WorstError(
                Unary::kAcos, inside, [](double x) { return std::acos(x); }, Relative),
            3e-7);
  for (const float most : {2.0f, 1e30f}) {
    EXPECT_LE(
        WorstError(
            Unary::kAtan, Sweep(-most, most), [](double x) { return std::atan(x); }, Relative),
        3e-7);
  }
  EXPECT_EQ(One(Unary::kAtan, kInf), std::atan(kInf));
  EXPECT_EQ(One(Unary::kAtan, -kInf), std::atan(-kInf));
  for (Unary op : {Unary::kAsin, Unary::kAcos}) {
    EXPECT_TRUE(std::isnan(One(op, 1.001f)));
    EXPECT_TRUE(std::isnan(One(op, -kInf)));
  }
}

TEST_P(ElementwiseTest, SoftplusAndMishErrorsAreBounded) {
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  EXPECT_LE(WorstError(Unary::kSoftplus, Sweep(-87, 100), softplus, Relative), 4e-7);
  EXPECT_EQ(One(Unary::kSoftplus, kInf), kInf);
  EXPECT_EQ(One(Unary::kSoftplus, -kInf), 0.0f);
  EXPECT_LE(WorstError(
                Unary::kMish, Sweep(-80, 100), [&](double x) { return x * std::tanh(softplus(x)); },
                Relative),
            5e-7);
  EXPECT_EQ(One(Unary::kMish, 1e30f), 1e30f);
  EXPECT_EQ(One(Unary::kMish, kInf), kInf);
}

TEST_P(ElementwiseTest, ShapedFunctionsAreThoseOfTheirDefinitions) {
  struct Case {
    Shaped op;
    float alpha, beta;
    double (*exact)(double x, double alpha, double beta);
  };
  const Case kCases[] = {
      {Shaped::kClip, -1, 2,
       [](double x, double a, double b) { return std::min(std::max(x, a), b); }},
      // The upper bound wins.
      {Shaped::kClip, 2, -1,
       [](double x, double a, double b) { return std::min(std::max(x, a), b); }},
      {Shaped::kLeakyRelu, 0.01f, 0, [](double x, double a, double) { return x < 0 ? a * x : x; }},
      {Shaped::kElu, 1.5f, 0,
       [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }},
      {Shaped::kSelu, 1.67f, 1.05f,
       [](double x, double a, double b) { return b * (x > 0 ? x : a * std::expm1(x)); }},
      {Shaped::kCelu, 0.7f, 0,
       [](double x, double a, double) { return x < 0 ? a * std::expm1(x / a) : x; }},
      {Shaped::kHardSigmoid, 0.2f, 0.5f,
       [](double x, double a, double b) { return std::min(std::max(a * x + b, 0.0), 1.0); }},
      {Shaped::kThresholdedRelu, 0.75f, 0,
       [](double x, double a, double) { return x > a ? x : 0; }},
      {Shaped::kShrink, 0.5f, 0.25f,
       [](double x, double a, double b) { return x < -a  ? x + b
                                                 : x > a ? x - b
                                                         : 0; }},
      {Shaped::kQuickGelu, 1.702f, 0,
       [](double x, double a, double) { return x / (1 + std::exp(-a * x)); }}};
  std::vector<float> x = Sweep(-40, 40);
  for (const float v : {kInf, 0.0f, -0.0f, 3e38f}) x.push_back(v);
  for (const Case& row : kCases) {
    SCOPED_TRACE(static_cast<int>(row.op));
    std::vector<float> y(x.size() + 1, 99.0f);
    kernels().shaped(row.op)(x.data(), row.alpha, row.beta, y.data(),
                             static_cast<int64_t>(x.size()));
    EXPECT_EQ(y.back(), 99.0f);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = row.exact(x[i], row.alpha, row.beta);
      if (std::isinf(exact)) {
        ASSERT_EQ(y[i], exact);
      } else {
        ASSERT_NEAR(y[i], exact,
                    3e-7 * std::max(std::abs(exact), std::min(1.0, 1.0 * std::abs(x[i]))))
            << x[i];
      }
    }
    const float nan = NAN;
    float of_nan;
    kernels().shaped(row.op)(&nan, row.alpha, row.beta, &of_nan, 1);
    const bool zero = row.op == Shaped::kThresholdedRelu || row.op == Shaped::kShrink;
    EXPECT_TRUE(zero ? of_nan == 0 : std::isnan(of_nan));
  }
}

TEST_P(ElementwiseTest, NanStaysNan) {
  for (Unary op :
       {Unary::kCopy,     Unary::kSqrt,     Unary::kReciprocal, Unary::kFloor,     Unary::kExp,
        Unary::kTanh,     Unary::kSigmoid,  Unary::kErf,        Unary::kRelu,      Unary::kGelu,
        Unary::kGeluTanh, Unary::kSilu,     Unary::kSquare,     Unary::kLog,       Unary::kSin,
        Unary::kCos,      Unary::kTan,      Unary::kAsin,       Unary::kAcos,      Unary::kAtan,
        Unary::kSoftplus, Unary::kSoftsign, Unary::kMish,       Unary::kHardSwish, Unary::kSign}) {
    EXPECT_TRUE(std::isnan(One(op, NAN))) << static_cast<int>(op);
  }
  float nan = NAN, one = 1, y;
  for (Binary op : {Binary::kMax, Binary::kMin}) {
    kernels().binary(op, cpu::Run::kBoth)(&nan, &one, &y, 1);
    EXPECT_TRUE(std::isnan(y));
    kernels().binary(op, cpu::Run::kBoth)(&one, &nan, &y, 1);
    EXPECT_TRUE(std::isnan(y));
  }
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
  check(Unary::kSign, [](double v) { return static_cast<double>((v > 0) - (v < 0)); });
  EXPECT_EQ(One(Unary::kSoftsign, -3), -0.75f);
  EXPECT_EQ(One(Unary::kHardSwish, 3), 3.0f);
  EXPECT_EQ(One(Unary::kHardSwish, -3), 0.0f);
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
      for (int op = 0; op <= static_cast<int>(Binary::kPRelu); ++op) {
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
              0.5 * s * (1 + std::tanh(std::sqrt(2 / M_PI) * (s + 0.044715 * s * s * s))),
              x < 0 ? x * z : x};
          ASSERT_NEAR(y[i], expected[op], 3e-7 * std::max(1.0, std::abs(expected[op])) + 3e-7)
              << "op " << op;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, ElementwiseTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
