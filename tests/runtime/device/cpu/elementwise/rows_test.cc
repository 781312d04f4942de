#include "runtime/device/cpu/elementwise/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kSizes[] = {1, 2, 7, 15, 16, 17, 31, 64, 100, 384};

std::vector<float> Random(int64_t count, uint32_t seed, float low = -2, float high = 2) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = uniform(random);
  return values;
}

class RowsTest : public testing::TestWithParam<Isa> {
 protected:
  const RowKernels& kernels() const { return RowKernelsFor(GetParam()); }
};

TEST_P(RowsTest, RotaryEqualsPlainLoopAlsoInPlace) {
  for (int64_t half : kSizes) {
    const int64_t size = 2 * half;
    SCOPED_TRACE(testing::Message() << "size " << size);
    std::vector<float> x = Random(size, 1);
    const std::vector<float> cosine = Random(size, 2), sine = Random(size, 3);
    std::vector<float> y(x.size());
    kernels().rotary(x.data(), cosine.data(), sine.data(), y.data(), size);
    for (int64_t i = 0; i < size; ++i) {
      const double turned = i < half ? -x[i + half] : x[i - half];
      ASSERT_NEAR(y[i], double{x[i]} * cosine[i] + turned * sine[i], 1e-6) << i;
    }
    kernels().rotary(x.data(), cosine.data(), sine.data(), x.data(), size);
    ASSERT_EQ(x, y);
  }
}

// Where vectors lie across rows and where along them; no number stays one.
TEST_P(RowsTest, RowsFoldToTheSameAloneAndTogether) {
  constexpr int64_t kRows = 35, kNanRow = 20;
  for (const int64_t size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17}) {
    std::vector<float> x = Random(kRows * size, 1);
    x[kNanRow * size + size - 1] = std::numeric_limits<float>::quiet_NaN();
    for (const Fold fold : {Fold::kSum, Fold::kMax, Fold::kMin, Fold::kProduct, Fold::kSumOfSquares,
                            Fold::kSumOfMagnitudes}) {
      SCOPED_TRACE(testing::Message() << "size " << size << " fold " << static_cast<int>(fold));
      std::vector<float> together(kRows + 1, -7), alone(kRows);
      kernels().fold_rows(fold, x.data(), size, 1, together.data(), 0, kRows);
      EXPECT_EQ(together[kRows], -7);
      for (int64_t row = 0; row < kRows; ++row) {
        kernels().fold_rows(fold, x.data(), size, 1, alone.data(), row, row + 1);
        double folded = fold == Fold::kProduct ? 1 : 0;
        for (int64_t i = 0; i < size; ++i) {
          const double value = x[row * size + i];
          if (fold == Fold::kMax) folded = i == 0 ? value : std::max(folded, value);
          if (fold == Fold::kMin) folded = i == 0 ? value : std::min(folded, value);
          if (fold == Fold::kProduct) folded *= value;
          if (fold == Fold::kSum) folded += value;
          if (fold == Fold::kSumOfSquares) folded += value * value;
          if (fold == Fold::kSumOfMagnitudes) folded += std::abs(value);
        }
        if (row == kNanRow) {
          EXPECT_TRUE(std::isnan(together[row]));
          continue;
        }
        EXPECT_EQ(together[row], alone[row]) << row;
        EXPECT_NEAR(together[row], folded, 1e-5 * std::max(1.0, std::abs(folded))) << row;
      }
      std::vector<float> halves(kRows);
      kernels().fold_rows(fold, x.data(), size, 0.5f, halves.data(), 0, kRows);
      for (int64_t row = 0; row < kRows; ++row) {
        if (row == kNanRow) continue;
        EXPECT_EQ(halves[row], together[row] / 2);
      }
    }
  }
}

TEST_P(RowsTest, NormEqualsPlainLoop) {
  constexpr int64_t kRows = 5;
  for (int64_t size : kSizes) {
    for (int variant = 0; variant < 16; ++variant) {
      SCOPED_TRACE(testing::Message() << "size " << size << " variant " << variant);
      const std::vector<float> x = Random(kRows * size, 1, 1, 5), residual = Random(2 * size, 2),
                               gamma = Random(size, 3), beta = Random(size, 4);
      std::vector<float> y(x.size()), sum(x.size());
      NormArgs args = {.x = x.data(), .y = y.data(), .size = size, .epsilon = 1e-5f};
      if (variant & 1) args.residual = residual.data();
      args.residual_rows = 2;
      if (variant & 2) args.gamma = gamma.data();
      if (variant & 4) args.beta = beta.data();
      if (variant & 8) args.sum = sum.data();
      args.centred = size != 64;
      kernels().norm(args, 0, 2);
      kernels().norm(args, 2, kRows);
      for (int64_t r = 0; r < kRows; ++r) {
        std::vector<double> s(size);
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < size; ++i) {
          s[i] = x[r * size + i] + (variant & 1 ? residual[r % 2 * size + i] : 0.0f);
          if (variant & 8) {
            ASSERT_FLOAT_EQ(sum[r * size + i], s[i]);
          }
          mean += s[i] / size;
        }
        if (!args.centred) mean = 0;
        for (double v : s) squares += (v - mean) * (v - mean) / size;
        for (int64_t i = 0; i < size; ++i) {
          double expected = (s[i] - mean) / std::sqrt(squares + 1e-5);
          if (variant & 2) expected *= gamma[i];
          if (variant & 4) expected += beta[i];
          ASSERT_NEAR(y[r * size + i], expected, 1e-5) << "row " << r << " column " << i;
        }
      }
    }
  }
}

TEST_P(RowsTest, NormMayOverwriteItsInputOrItsResidual) {
  const std::vector<float> x = Random(3 * 50, 1), residual = Random(3 * 50, 2);
  std::vector<float> expected(x.size()), in_place = x, over_residual = residual;
  NormArgs args = {.x = x.data(),
                   .residual = residual.data(),
                   .residual_rows = 3,
                   .y = expected.data(),
                   .size = 50,
                   .epsilon = 1e-5f};
  kernels().norm(args, 0, 3);
  args.x = args.y = in_place.data();
  kernels().norm(args, 0, 3);
  EXPECT_EQ(in_place, expected);
  args.x = x.data();
  args.residual = args.y = over_residual.data();
  kernels().norm(args, 0, 3);
  EXPECT_EQ(over_residual, expected);
}

TEST_P(RowsTest, SoftmaxEqualsPlainLoop) {
  for (int64_t size : kSizes) {
    const std::vector<float> x = Random(3 * size, 1, -30, 30);
    std::vector<float> y(x.size());
    kernels().softmax(x.data(), y.data(), size, 0, 3);
    for (int64_t r = 0; r < 3; ++r) {
      double max = -INFINITY, sum = 0;
      for (int64_t i = 0; i < size; ++i) max = std::max<double>(max, x[r * size + i]);
      for (int64_t i = 0; i < size; ++i) sum += std::exp(x[r * size + i] - max);
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_NEAR(y[r * size + i], std::exp(x[r * size + i] - max) / sum, 3e-7);
      }
    }
  }
}

TEST_P(RowsTest, SoftmaxOfMaskedElementsIsZeroAndOfNothingElseIsNan) {
  std::vector<float> x(40, -INFINITY);
  x[3] = 1;
  kernels().softmax(x.data(), x.data(), 20, 0, 2);
  EXPECT_EQ(x[3], 1.0f);
  EXPECT_EQ(x[4], 0.0f);
  EXPECT_TRUE(std::isnan(x[20]));
}

TEST_P(RowsTest, SumsOfRowsEqualPlainLoop) {
  for (int64_t size : kSizes) {
    const std::vector<float> x = Random(7 * size, 1), weights = Random(7, 2);
    // Rows of tables in a file may begin anywhere.
    std::vector<std::byte> file(1 + x.size() * sizeof(float));
    std::memcpy(file.data() + 1, x.data(), x.size() * sizeof(float));
    const std::byte* odd = file.data() + 1 + 3 * size * sizeof(float);
    const std::byte* rows[] = {odd, reinterpret_cast<const std::byte*>(x.data()), odd};
    std::vector<float> y(size), weighted(size), plain(size);
    kernels().sum_rows(rows, 3, size, y.data());
    kernels().weighted_sum(x.data(), size, weights.data(), 7, size, 0.5f, weighted.data());
    kernels().weighted_sum(x.data(), size, nullptr, 7, size, 1.0f, plain.data());
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_NEAR(y[i], x[i] + 2.0 * x[3 * size + i], 1e-6);
      double sum = 0, ones = 0;
      for (int64_t r = 0; r < 7; ++r) {
        sum += 0.5 * weights[r] * x[r * size + i];
        ones += x[r * size + i];
      }
      EXPECT_NEAR(weighted[i], sum, 2e-6);
      EXPECT_NEAR(plain[i], ones, 2e-6);
    }
  }
}

TEST_P(RowsTest, FoldsAreThoseOfAPlainLoopAndFindNanAnywhere) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-2, 2);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t size : {1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 65, 100, 131}) {
    std::vector<float> x(3 * size);
    for (float& v : x) v = uniform(random);
    const int64_t place = static_cast<int64_t>(random() % size);
    for (const float special : {1.5f, kInfinity, -kInfinity, NAN}) {
      x[size + place] = special;
      for (const Fold fold : {Fold::kSum, Fold::kMax, Fold::kMin, Fold::kProduct,
                              Fold::kSumOfSquares, Fold::kSumOfMagnitudes}) {
        const auto join = [&](double folded, double v) {
          if (std::isnan(folded) || std::isnan(v)) return std::nan("");
          return fold == Fold::kMax            ? std::max(folded, v)
                 : fold == Fold::kMin          ? std::min(folded, v)
                 : fold == Fold::kProduct      ? folded * v
                 : fold == Fold::kSumOfSquares ? folded + v * v
                 : fold == Fold::kSum          ? folded + v
                                               : folded + std::abs(v);
        };
        const double neutral = fold == Fold::kMax       ? -kInfinity
                               : fold == Fold::kMin     ? kInfinity
                               : fold == Fold::kProduct ? 1
                                                        : 0;
        std::vector<double> rows(3, neutral), columns(size, neutral);
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t i = 0; i < size; ++i) {
            rows[r] = join(rows[r], x[r * size + i]);
            columns[i] = join(columns[i], x[r * size + i]);
          }
        }
        const auto expect = [&](const std::vector<float>& got, const std::vector<double>& want) {
          for (size_t i = 0; i < want.size(); ++i) {
            if (std::isfinite(want[i])) {
              ASSERT_NEAR(got[i], want[i], 1e-5 * std::max(1.0, std::abs(want[i]))) << i;
            } else {
              ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]) << i;
            }
          }
        };
        SCOPED_TRACE(testing::Message() << "fold " << static_cast<int>(fold) << " of " << size);
        std::vector<float> of_rows(3), of_columns(size);
        kernels().fold_rows(fold, x.data(), size, 1, of_rows.data(), 0, 3);
        expect(of_rows, rows);
        kernels().fold_columns(fold, x.data(), size, 3, size, of_columns.data());
        expect(of_columns, columns);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(RowsTest, LogSoftmaxHasTheDigitsOfItsDefinition) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 8);
  for (const int64_t size : {1, 5, 16, 33, 1000}) {
    std::vector<float> x(2 * size), y(2 * size);
    for (float& v : x) v = normal(random);
    kernels().log_softmax(x.data(), y.data(), size, 0, 2);
    for (int64_t r = 0; r < 2; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) sum += std::exp(double{x[r * size + i]});
      for (int64_t i = 0; i < size; ++i) {
        const double want = x[r * size + i] - std::log(sum);
        ASSERT_NEAR(y[r * size + i], want, 4e-7 * std::max(1.0, std::abs(want)));
      }
    }
  }
  // One class, or one that is all there is to choose from, is certain: no digit is lost.
  for (const float certain : {0.0F, 1.7F, -3.3F, 1e30F}) {
    float one[] = {certain};
    kernels().log_softmax(one, one, 1, 0, 1);
    EXPECT_EQ(one[0], 0);
    float column[] = {certain};
    kernels().softmax_columns(/*log=*/true, column, 1, 1, 1, column);
    EXPECT_EQ(column[0], 0);
    float two[] = {certain, -std::numeric_limits<float>::infinity()};
    kernels().log_softmax(two, two, 2, 0, 1);
    EXPECT_EQ(two[0], 0);
  }
  // A masked element has the probability 0; where all are masked, there is no probability.
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float masked[] = {1, -kInfinity, 1, -kInfinity, -kInfinity, -kInfinity};
  kernels().log_softmax(masked, masked, 3, 0, 2);
  EXPECT_NEAR(masked[0], -std::log(2.0), 1e-6);
  EXPECT_EQ(masked[1], -kInfinity);
  for (int i : {3, 4, 5}) EXPECT_TRUE(std::isnan(masked[i]));
}

INSTANTIATE_TEST_SUITE_P(Tiers, RowsTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
