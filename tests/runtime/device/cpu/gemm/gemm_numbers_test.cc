// Infinity, no number and large numbers in products: they stay in their rows and columns.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "tests/runtime/device/cpu/gemm/gemm_harness.h"

namespace reprise::cpu {
namespace {

class GemmNumbersTest : public GemmOfTier {};

TEST_P(GemmNumbersTest, InfinityNoNumberAndLargeNumbersStayInTheirRows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLarge = std::numeric_limits<float>::max() / 256;
  for (const bool int8 : {false, true}) {
    SCOPED_TRACE(int8 ? "int8" : "float");
    Int8Product p({20, 70, 60}, 5, false, int8);
    if (!int8) {
      // Few bits and many: parts of a weight may be 0 and of either sign.
      for (size_t i = 0; i < p.b.size(); ++i) p.b[i] = i % 3 == 0 ? 0.5f : p.b[i] - 0.0001f;
    }
    for (int64_t i : {3, 4, 5}) std::fill_n(p.a.begin() + i * p.lda, p.k, 0.0f);
    p.a[3 * p.lda + 7] = kInfinity;
    p.a[4 * p.lda + 8] = std::numeric_limits<float>::quiet_NaN();
    p.a[5 * p.lda + 9] = kLarge;
    AlignedBuffer packed(
        static_cast<size_t>(int8 ? int8_kernels().PackedInt8Bytes(p.k, p.n)
                                 : kernels().PackedFloats(p.k, p.n) * sizeof(float)));
    GemmArgs args = p.Args(Activation::kNone);
    args.packed_b = packed.data();
    args.bias = nullptr;
    args.residual = nullptr;
    if (int8) {
      int8_kernels().pack_int8(p.Int8(), p.k, p.n, 1, packed.data());
      int8_kernels().part_int8(args, {0, p.m, 0, int8_kernels().Panels(p.n)});
    } else {
      kernels().pack(p.Source(), p.k, p.n, 1, reinterpret_cast<float*>(packed.data()));
      kernels().part(args, {0, p.m, 0, kernels().Panels(p.n)});
    }
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        const float got = p.result()[static_cast<size_t>(i * p.ldc + j)];
        const auto weight = [&](int64_t row) { return p.b[row * p.ldb + j]; };
        if (i == 3) {
          if (weight(7) == 0) {
            EXPECT_TRUE(std::isnan(got));
          } else {
            EXPECT_EQ(got, std::copysign(kInfinity, weight(7))) << weight(7);
          }
        } else if (i == 4) {
          EXPECT_TRUE(std::isnan(got));
        } else if (i == 5) {
          EXPECT_NEAR(got / kLarge, weight(9), 1e-6);
        } else {
          EXPECT_TRUE(std::isfinite(got)) << "row " << i;
        }
      }
    }
  }
}

// Where large elements meet weights of 0 only the small ones are seen: they keep their digits.
TEST_P(GemmNumbersTest, SmallElementsBesideAFewLargeOnesKeepTheirDigits) {
  for (const int64_t k : {40, 384, 1537}) {
    for (const int large : {1, 2, 5}) {
      if (large * 20 > k) continue;
      for (const float value : {300.0f, 3e3f, 1e4f, 1.7e9f, -1e30f}) {
        SCOPED_TRACE(testing::Message() << large << " of " << value << " among " << k);
        Int8Product p({8, k, 50}, 5, large % 2 == 0);
        std::vector<int64_t> places;
        for (int i = 0; i < large; ++i) places.push_back((7 + 13 * i) % k);
        const auto weight_at = [&](int64_t row, int64_t column) {
          return p.Source().transposed ? column * p.ldb + row : row * p.ldb + column;
        };
        for (const int64_t place : places) {
          for (int64_t i = 0; i < p.m; i += 2) p.a[i * p.lda + place] = value;
          for (int64_t j = 0; j < p.n; j += 3) {
            p.values[weight_at(place, j)] = 0;
            p.b[weight_at(place, j)] = 0;
          }
        }
        AlignedBuffer packed(static_cast<size_t>(int8_kernels().PackedInt8Bytes(p.k, p.n)));
        int8_kernels().pack_int8(p.Int8(), p.k, p.n, 1, packed.data());
        GemmArgs args = p.Args(Activation::kNone);
        args.packed_b = packed.data();
        args.bias = nullptr;
        args.residual = nullptr;
        int8_kernels().part_int8(args, {0, p.m, 0, int8_kernels().Panels(p.n)});
        for (int64_t i = 0; i < p.m; ++i) {
          for (int64_t j = 0; j < p.n; ++j) {
            double sum = 0, magnitudes = 0;
            for (int64_t r = 0; r < k; ++r) {
              const double term = static_cast<double>(p.a[i * p.lda + r]) * p.b[weight_at(r, j)];
              sum += term;
              magnitudes += std::abs(term);
            }
            // The columns that see a large element round by it in floats, too.
            ASSERT_NEAR(p.result()[static_cast<size_t>(i * p.ldc + j)], sum,
                        1e-5 + 5e-6 * magnitudes)
                << "row " << i << " column " << j;
          }
        }
      }
    }
  }
}

TEST_P(GemmNumbersTest, RowsOfAnyMagnitudeHaveTheirDigits) {
  Int8Product p({9, 67, 50}, 5, false);
  const float scales[] = {1e-45f, 1e-40f, 1e-36f, 1e-30f, 1.0f, 1e20f, 1e34f, 0.0f, 1e35f};
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t r = 0; r < p.k; ++r) p.a[i * p.lda + r] *= scales[i];
  }
  AlignedBuffer packed(static_cast<size_t>(int8_kernels().PackedInt8Bytes(p.k, p.n)));
  int8_kernels().pack_int8(p.Int8(), p.k, p.n, 1, packed.data());
  GemmArgs args = p.Args(Activation::kNone);
  args.packed_b = packed.data();
  args.bias = nullptr;
  args.residual = nullptr;
  int8_kernels().part_int8(args, {0, p.m, 0, int8_kernels().Panels(p.n)});
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, magnitudes = 0;
      for (int64_t r = 0; r < p.k; ++r) {
        const double term = static_cast<double>(p.a[i * p.lda + r]) * p.b[r * p.ldb + j];
        sum += term;
        magnitudes += std::abs(term);
      }
      // Numbers near the smallest normal one lose theirs.
      ASSERT_NEAR(p.result()[static_cast<size_t>(i * p.ldc + j)], sum, 2e-36 + 5e-6 * magnitudes)
          << "row " << i << " column " << j;
    }
  }
}

TEST_P(GemmNumbersTest, InfinityAndNoNumberAmongTheWeightsStayInTheirColumns) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t m : {5, 40, 70}) {
    const Case c = {m, 70, 60};
    GuardedProduct finite(c, 5, false);
    GuardedProduct p(c, 5, false);
    p.b[7 * p.ldb + 11] = -kInfinity;
    p.b[8 * p.ldb + 50] = std::numeric_limits<float>::quiet_NaN();
    // Times numbers of both signs: infinity less infinity in half of the rows.
    p.b[3 * p.ldb + 30] = kInfinity;
    p.b[4 * p.ldb + 30] = kInfinity;
    for (GuardedProduct* product : {&finite, &p}) {
      const AlignedBuffer packed = PackB(*product);
      GemmArgs args = product->Args(Activation::kNone);
      args.packed_b = packed.data();
      kernels().part(args, {0, m, 0, kernels().Panels(c.n)});
    }
    for (int64_t i = 0; i < m; ++i) {
      const auto a = [&](int64_t column) { return p.a[i * p.lda + column]; };
      for (int64_t j = 0; j < c.n; ++j) {
        const float got = p.result()[static_cast<size_t>(i * p.ldc + j)];
        if (j == 11) {
          EXPECT_EQ(got, std::copysign(kInfinity, -a(7))) << "row " << i;
        } else if (j == 50) {
          EXPECT_TRUE(std::isnan(got)) << "row " << i;
        } else if (j == 30 && std::signbit(a(3)) != std::signbit(a(4))) {
          EXPECT_TRUE(std::isnan(got)) << "row " << i;
        } else if (j == 30) {
          EXPECT_EQ(got, std::copysign(kInfinity, a(3))) << "row " << i;
        } else {
          EXPECT_EQ(got, finite.result()[static_cast<size_t>(i * p.ldc + j)]) << "row " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, GemmNumbersTest, testing::ValuesIn(UnitTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
