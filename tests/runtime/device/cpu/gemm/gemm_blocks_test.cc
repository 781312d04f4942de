// Products by weights of a few bits against the products by the floats that they stand for: both
// add in the order of k, so that not a bit differs, on every tier.
#include "runtime/device/cpu/gemm/gemm_blocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/device/cpu/gemm/block_weights.h"
#include "tests/runtime/device/cpu/gemm/gemm_harness.h"

namespace reprise::cpu {
namespace {

class GemmBlocksTest : public testing::TestWithParam<Isa> {};

TEST_P(GemmBlocksTest, HaveEveryBitOfTheProductsByFloats) {
  const BlockGemmKernels& kernels = BlockGemmKernelsFor(GetParam());
  const GemmKernels& floats = GemmKernelsFor(GetParam());
  ASSERT_EQ(kernels.panel_columns, floats.panel_columns);
  constexpr Stored kStored[] = {
      {4, 4, 0, 32, false},   {4, 4, 0, 16, true}, {4, 4, 0, 1024, true}, {8, 8, 0, 32, true},
      {8, 8, 128, 16, false}, {8, 4, 8, 8, false}, {2, 4, 0, 16, true},   {8, 8, 128, 20, true},
  };
  uint32_t seed = 1;
  for (const Stored& stored : kStored) {
    for (int64_t m : {1, 2, 3, 4, 7, 8, 9, 17, 37, 130}) {
      for (int64_t n : {1, 31, 48, 49, 97, 144}) {
        for (int64_t k : {1, 13, 64, 257, 1600}) {
          if (k == 1600 && m * n > 4000) continue;  // slow on the baseline
          SCOPED_TRACE(testing::Message() << testing::PrintToString(stored) << ", m " << m << " n "
                                          << n << " k " << k);
          ++seed;
          GuardedProduct p({m, k, n}, seed, /*transposed=*/true);
          const Blocks blocks(stored, seed, p);
          GuardedProduct wide({m, k, n}, seed, /*transposed=*/true);
          wide.b = p.b;
          AlignedBuffer packed(static_cast<size_t>(kernels.PackedBytes(k, n, blocks.form)));
          kernels.pack(blocks.source, blocks.form, k, n, packed.data());
          AlignedBuffer packed_floats(sizeof(float) *
                                      static_cast<size_t>(floats.PackedFloats(k, n)));
          floats.pack(wide.Source(), k, n, 1, reinterpret_cast<float*>(packed_floats.data()));
          GemmArgs args = p.Args(seed % 3 == 0 ? Activation::kGelu : Activation::kNone);
          if (seed % 4 == 0) args.bias = nullptr;
          if (seed % 5 == 0) args.residual = nullptr;
          GemmArgs wide_args = wide.Args(args.activation);
          if (args.bias == nullptr) wide_args.bias = nullptr;
          if (args.residual == nullptr) wide_args.residual = nullptr;
          args.packed_b = packed.data();
          wide_args.packed_b = packed_floats.data();
          floats.part(wide_args, {0, m, 0, floats.Panels(n)});
          for (int share = 0; share < 3; ++share) {
            kernels.part(args, blocks.form, floats.Partition(m, n, /*int8=*/false, 3, share));
          }
          ASSERT_EQ(p.result(), wide.result());
          // Panels of floats must equal those that the packed floats have.
          AlignedBuffer panel(sizeof(float) * static_cast<size_t>(kernels.panel_columns * k));
          const auto* const want = reinterpret_cast<const float*>(packed_floats.data());
          const auto* const got = reinterpret_cast<const float*>(panel.data());
          for (int64_t i = 0; i < floats.Panels(n); ++i) {
            kernels.widen(packed.data(), blocks.form, k, i, reinterpret_cast<float*>(panel.data()));
            for (int64_t at = 0; at < kernels.panel_columns * k; ++at) {
              ASSERT_EQ(got[at], want[i * kernels.panel_columns * k + at]) << i << " " << at;
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, GemmBlocksTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
