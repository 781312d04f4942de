// Products of bfloat16 by weights of a few bits: rows alone are rounded, and a row has the same
// bits whatever the other rows are.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/graph/tensor.h"
#include "tests/runtime/device/cpu/gemm/block_weights.h"
#include "tests/runtime/device/cpu/gemm/gemm_harness.h"

namespace reprise::cpu {
namespace {

constexpr Stored kStored[] = {
    {4, 4, 0, 32, false},   {4, 4, 0, 16, true}, {4, 4, 0, 1024, true}, {8, 8, 0, 32, true},
    {8, 8, 128, 16, false}, {8, 4, 8, 8, false}, {2, 4, 0, 16, true},   {8, 8, 128, 2100, false},
};

float RoundedToBf16(float x) { return BFloat16ToFloat(FloatToBFloat16(x)); }

// Weights of `product`, packed.
struct PackedBlocks {
  PackedBlocks(const Bf16BlockKernels& kernels, const Stored& stored, uint32_t seed,
               GuardedProduct& product)
      : blocks(stored, seed, product) {
    packed = AlignedBuffer(static_cast<size_t>(kernels.packed_bytes(product.k, product.n, form())));
    kernels.pack(blocks.source, form(), product.k, product.n, packed.data());
  }
  const BlockForm& form() const { return blocks.form; }

  Blocks blocks;
  AlignedBuffer packed;
};

class GemmBlockBf16Test : public testing::Test {
 protected:
  void SetUp() override {
    if (kernels_ == nullptr) GTEST_SKIP() << "this CPU does not multiply bfloat16";
  }

  // Rows [begin, end) of the product, divided into `parts`.
  void Run(GemmArgs args, const PackedBlocks& b, int64_t begin, int64_t end, int parts) const {
    args.packed_b = b.packed.data();
    args.a += begin * args.lda;
    args.c += begin * args.ldc;
    if (args.residual != nullptr) args.residual += begin * args.ld_residual;
    const AlignedBuffer scratch(
        static_cast<size_t>(kernels_->scratch_bytes(end - begin, args.k, b.form())));
    args.scratch = scratch.data();
    for (int part = 0; part < parts; ++part) {
      kernels_->part(args, b.form(),
                     kernels_->division.Partition(end - begin, args.n, false, parts, part));
    }
  }

  // Expects the sums of rounded elements by exact weights, but for the rounding of float32.
  static void ExpectRounded(const GuardedProduct& p, int64_t row) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < p.k; ++i) {
        const double term =
            static_cast<double>(RoundedToBf16(p.a[row * p.lda + i])) * p.b[j * p.ldb + i];
        sum += term;
        magnitude += std::abs(term);
      }
      // With zero points a block's sum is a difference of two numbers up to 16 times its size.
      ASSERT_NEAR(p.result()[static_cast<size_t>(row * p.ldc + j)], sum, 2e-5 * (magnitude + 0.1))
          << "row " << row << " column " << j;
    }
  }

  const Bf16BlockKernels* const kernels_ = Bf16BlockKernelsFor(DetectIsa());
};

TEST_F(GemmBlockBf16Test, RowsAreRoundedAloneAndHaveTheSameBitsHoweverManyThereAre) {
  uint32_t seed = 1;
  for (const Stored& stored : kStored) {
    for (int64_t m : {1, 2, 3, 4, 7, 12, 13, 17, 430}) {
      for (int64_t n : {1, 31, 49, 97}) {
        for (int64_t k : {1, 13, 64, 257, 2100}) {
          if (m * n * k > 2'000'000) continue;
          SCOPED_TRACE(testing::Message()
                       << stored.bits << " bits kept as " << stored.kept << ", blocks of "
                       << stored.block << ", m " << m << " n " << n << " k " << k);
          GuardedProduct p({m, k, n}, ++seed, /*transposed=*/true);
          const PackedBlocks b(*kernels_, stored, seed, p);
          GemmArgs args = p.Args(Activation::kNone);
          args.bias = nullptr;
          args.residual = nullptr;
          Run(args, b, 0, m, 1);
          for (int64_t row = 0; row < m; row += 1 + m / 5) {
            ExpectRounded(p, row);
            if (HasFatalFailure()) return;
          }
          args = p.Args(seed % 3 == 0 ? Activation::kGelu : Activation::kNone);
          if (seed % 4 == 0) args.bias = nullptr;
          if (seed % 5 == 0) args.residual = nullptr;
          Run(args, b, 0, m, 1);
          const std::vector<float> whole = p.result();
          Run(args, b, 0, m, 3);
          ASSERT_EQ(p.result(), whole);
          for (int64_t row = 0; row < m; row += 1 + m / 5) Run(args, b, row, row + 1, 1);
          ASSERT_EQ(p.result(), whole);
          Run(args, b, 0, (m + 1) / 2, 1);
          ASSERT_EQ(p.result(), whole);
          for (int64_t j = 0; j < m; ++j) {
            for (int64_t i = n; i < p.ldc; ++i) {
              ASSERT_EQ(whole[static_cast<size_t>(j * p.ldc + i)], GuardedProduct::kCanary);
            }
          }
        }
      }
    }
  }
}

TEST_F(GemmBlockBf16Test, InfinityAndNoNumberStayInTheirRows) {
  GuardedProduct p({6, 70, 40}, 5, /*transposed=*/true);
  p.a[1 * p.lda + 7] = std::numeric_limits<float>::infinity();
  p.a[3 * p.lda + 69] = std::numeric_limits<float>::quiet_NaN();
  const PackedBlocks b(*kernels_, {4, 4, 0, 32, true}, 5, p);
  GemmArgs args = p.Args(Activation::kNone);
  args.bias = nullptr;
  args.residual = nullptr;
  Run(args, b, 0, p.m, 1);
  for (int64_t row = 0; row < p.m; ++row) {
    if (row != 1 && row != 3) ExpectRounded(p, row);
  }
  for (int64_t j = 0; j < p.n; ++j) {
    EXPECT_FALSE(std::isfinite(p.result()[static_cast<size_t>(p.ldc + j)]));
    EXPECT_TRUE(std::isnan(p.result()[static_cast<size_t>(3 * p.ldc + j)]));
  }
}

// For the tile unit: panels of weights that are rounded, as gemm_bf16 packs them.
TEST_F(GemmBlockBf16Test, WidenedPanelsAreThoseOfRoundedFloats) {
  const Bf16Kernels& floats = *Bf16DotKernelsFor(DetectIsa());
  uint32_t seed = 1;
  for (const Stored& stored : kStored) {
    for (int64_t k : {1, 13, 64, 257, 2100}) {
      SCOPED_TRACE(testing::Message()
                   << stored.bits << " bits, blocks of " << stored.block << ", k " << k);
      GuardedProduct p({1, k, 70}, ++seed, /*transposed=*/true);
      const PackedBlocks b(*kernels_, stored, seed, p);
      AlignedBuffer packed(static_cast<size_t>(floats.PackedBytes(k, p.n)));
      floats.pack({p.b.data(), p.ldb, /*transposed=*/true}, k, p.n, packed.data());
      const int64_t bytes = floats.PackedBytes(k, floats.panel_columns);
      AlignedBuffer panel(static_cast<size_t>(bytes));
      for (int64_t i = 0; i < floats.Panels(p.n); ++i) {
        kernels_->widen(b.packed.data(), b.form(), k, i, panel.data());
        const auto* const got = reinterpret_cast<const uint16_t*>(panel.data());
        const auto* const want = reinterpret_cast<const uint16_t*>(packed.data() + i * bytes);
        for (int64_t at = 0; at < bytes / 2; ++at) {
          if (at / 2 / floats.panel_columns * 2 + at % 2 >= k) continue;  // meets zeros alone
          const float a = BFloat16ToFloat(got[at]), w = BFloat16ToFloat(want[at]);
          // A tie falls to the other side where a zero point has become an offset.
          ASSERT_NEAR(a, w, std::abs(w) / 120 + 1e-6) << at;
          if (!stored.points) ASSERT_EQ(a, w) << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace reprise::cpu
