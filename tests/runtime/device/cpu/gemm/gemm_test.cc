// Products of every storage of weights on every tier against a plain loop.
#include "runtime/device/cpu/gemm/gemm.h"

#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/graph/tensor.h"
#include "tests/runtime/device/cpu/gemm/gemm_harness.h"

namespace reprise::cpu {
namespace {

class GemmTest : public GemmOfTier {};

TEST_P(GemmTest, PackedProductEqualsPlainLoopForAnyShape) {
  uint32_t seed = 1;
  for (int64_t m : {1, 2, 3, 5, 6, 7, 8, 9, 11, 16, 23, 130}) {
    for (int64_t n : {1, 7, 15, 16, 17, 31, 47, 48, 49, 97}) {
      for (int64_t k : {1, 2, 13, 64}) {
        SCOPED_TRACE(testing::Message() << "m " << m << " n " << n << " k " << k);
        ++seed;
        GuardedProduct p({m, k, n}, seed, seed % 2 == 0);
        const AlignedBuffer packed = PackB(p);
        GemmArgs args = p.Args(Activation::kNone);
        args.packed_b = packed.data();
        if (seed % 3 == 0) args.bias = nullptr;
        if (seed % 5 == 0) args.residual = nullptr;
        kernels().part(args, {0, m, 0, kernels().Panels(n)});
        p.Check(args);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The last one has more rows than the tile unit keeps at a time.
TEST_P(GemmTest, DeepProductIsSummedInStretches) {
  for (const Case& c :
       {Case{11, 128, 50}, Case{11, 129, 50}, Case{11, 385, 50}, Case{19, 192, 50},
        Case{19, 193, 50}, Case{19, 577, 50}, Case{19, 2047, 50}, Case{19, 2048, 50},
        Case{19, 2049, 50}, Case{19, 5000, 50}, Case{100, 5000, 50}, Case{32, 389, 50},
        Case{49, 801, 100}, Case{140, 1536, 50}}) {
    SCOPED_TRACE(testing::Message() << "m " << c.m << " k " << c.k);
    GuardedProduct p(c, 3, false);
    const AlignedBuffer packed = PackB(p);
    GemmArgs args = p.Args(Activation::kRelu);
    args.packed_b = packed.data();
    kernels().part(args, {0, c.m, 0, kernels().Panels(c.n)});
    p.Check(args);
    Int8Product q(c, 3, false);
    AlignedBuffer packed_int8(static_cast<size_t>(kernels().PackedInt8Bytes(c.k, c.n)));
    kernels().pack_int8(q.Int8(), c.k, c.n, 1, packed_int8.data());
    GemmArgs int8_args = q.Args(Activation::kRelu);
    int8_args.packed_b = packed_int8.data();
    kernels().part_int8(int8_args, {0, c.m, 0, kernels().Panels(c.n)});
    q.Check(int8_args);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GemmTest, EveryActivationIsAppliedBeforeTheResidual) {
  for (Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
        Activation::kTanh, Activation::kSigmoid, Activation::kSilu, Activation::kQuickGelu,
        Activation::kGeluDoubled, Activation::kGeluTanhDoubled}) {
    SCOPED_TRACE(static_cast<int>(activation));
    GuardedProduct p({13, 20, 101}, 7, true);
    const AlignedBuffer packed = PackB(p);
    GemmArgs args = p.Args(activation);
    args.packed_b = packed.data();
    kernels().part(args, {0, 13, 0, kernels().Panels(101)});
    p.Check(args);
  }
}

TEST_P(GemmTest, ResidualMayBeTheResultItself) {
  GuardedProduct p({10, 2100, 96}, 9, false);
  const AlignedBuffer packed = PackB(p);
  std::vector<float> in_place = p.residual;
  GemmArgs args = p.Args(Activation::kNone);
  args.packed_b = packed.data();
  kernels().part(args, {0, 10, 0, kernels().Panels(96)});
  args.c = in_place.data();
  args.ldc = p.ldr;
  args.residual = in_place.data();
  kernels().part(args, {0, 10, 0, kernels().Panels(96)});
  for (int64_t i = 0; i < 10; ++i) {
    for (int64_t j = 0; j < 96; ++j) {
      ASSERT_EQ(in_place[i * p.ldr + j], p.result()[i * p.ldc + j]);
    }
  }
}

TEST_P(GemmTest, ResidualMayBeTheResultOfInt8WeightsItself) {
  const Case c = {100, 5000, 96};
  Int8Product p(c, 9, false);
  AlignedBuffer packed(static_cast<size_t>(kernels().PackedInt8Bytes(c.k, c.n)));
  kernels().pack_int8(p.Int8(), c.k, c.n, 1, packed.data());
  std::vector<float> in_place = p.residual;
  GemmArgs args = p.Args(Activation::kNone);
  args.packed_b = packed.data();
  kernels().part_int8(args, {0, c.m, 0, kernels().Panels(c.n)});
  args.c = in_place.data();
  args.ldc = p.ldr;
  args.residual = in_place.data();
  kernels().part_int8(args, {0, c.m, 0, kernels().Panels(c.n)});
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      ASSERT_EQ(in_place[i * p.ldr + j], p.result()[i * p.ldc + j]);
    }
  }
}

// All at the ends of their ranges: sums of 32 bits hold them.
TEST_P(GemmTest, LargestInt8ProductsDoNotOverflow) {
  const int64_t k = kDeepestDigits;
  for (const int8_t weight : {int8_t{-128}, int8_t{127}}) {
    GuardedProduct p({2, k, 3}, 1, false, /*int8=*/true);
    std::fill_n(p.a.begin(), k, -1.0f);
    std::fill_n(p.a.begin() + p.lda, k, 1.0f);
    const std::vector<int8_t> values(static_cast<size_t>(k * 3), weight);
    AlignedBuffer packed(static_cast<size_t>(kernels().PackedInt8Bytes(k, 3)));
    kernels().pack_int8({values.data(), 3, false, nullptr}, k, 3, 1, packed.data());
    GemmArgs args = p.Args(Activation::kNone);
    args.packed_b = packed.data();
    args.bias = nullptr;
    args.residual = nullptr;
    kernels().part_int8(args, {0, 2, 0, kernels().Panels(3)});
    const double sum = static_cast<double>(k) * weight;
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_NEAR(p.result()[static_cast<size_t>(j)], -sum, 1e-6 * std::abs(sum));
      EXPECT_NEAR(p.result()[static_cast<size_t>(p.ldc + j)], sum, 1e-6 * std::abs(sum));
    }
  }
}

TEST_P(GemmTest, PackMultipliesByScale) {
  GuardedProduct p({4, 30, 33}, 11, false);
  const AlignedBuffer packed = PackB(p, 0.25f);
  GemmArgs args = p.Args(Activation::kNone);
  args.packed_b = packed.data();
  kernels().part(args, {0, 4, 0, kernels().Panels(33)});
  p.Check(args, 0.25);
}

TEST_P(GemmTest, Int8ProductEqualsPlainLoopForAnyShape) {
  uint32_t seed = 1;
  for (int64_t m : {1, 2, 3, 5, 6, 7, 8, 9, 11, 16, 23, 130}) {
    for (int64_t n : {1, 7, 16, 17, 31, 48, 49, 97}) {
      for (int64_t k : {1, 13, 64, 255, 256, 257, 600}) {
        SCOPED_TRACE(testing::Message() << "m " << m << " n " << n << " k " << k);
        ++seed;
        Int8Product p({m, k, n}, seed, seed % 2 == 0);
        AlignedBuffer packed(static_cast<size_t>(kernels().PackedInt8Bytes(k, n)));
        kernels().pack_int8(p.Int8(), k, n, 1, packed.data());
        GemmArgs args = p.Args(seed % 7 == 0 ? Activation::kGelu : Activation::kNone);
        args.packed_b = packed.data();
        if (seed % 3 == 0) args.bias = nullptr;
        if (seed % 5 == 0) args.residual = nullptr;
        kernels().part_int8(args, {0, m, 0, kernels().Panels(n)});
        p.Check(args);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Every half is a float, and sums are added in the same order: not a bit differs.
TEST_P(GemmTest, ProductsByHalvesAreThoseByTheFloatsThatTheyAre) {
  const GemmKernels& kernels = GemmKernelsFor(GetParam());
  uint32_t seed = 1;
  for (const bool f16 : {true, false}) {
    for (int64_t m : {1, 2, 6, 7, 9, 16, 37, 130}) {
      for (int64_t n : {1, 16, 31, 49, 97}) {
        for (int64_t k : {1, 13, 64, 257, 600}) {
          SCOPED_TRACE(testing::Message() << "m " << m << " n " << n << " k " << k);
          ++seed;
          GuardedProduct p({m, k, n}, seed, seed % 2 == 0);
          std::vector<uint16_t> halves;
          for (float& value : p.b) {
            halves.push_back(f16 ? FloatToHalf(value) : FloatToBFloat16(value));
            value = f16 ? HalfToFloat(halves.back()) : BFloat16ToFloat(halves.back());
          }
          GuardedProduct wide({m, k, n}, seed, seed % 2 == 0);
          wide.b = p.b;
          AlignedBuffer packed(sizeof(uint16_t) * static_cast<size_t>(kernels.PackedHalves(k, n)));
          kernels.pack_half({halves.data(), p.ldb, p.Source().transposed}, k, n,
                            reinterpret_cast<uint16_t*>(packed.data()));
          const auto part = f16 ? kernels.part_float16 : kernels.part_bfloat16;
          AlignedBuffer floats(sizeof(float) * static_cast<size_t>(kernels.PackedFloats(k, n)));
          kernels.pack(wide.Source(), k, n, 1, reinterpret_cast<float*>(floats.data()));
          GemmArgs wide_args = wide.Args(Activation::kGelu);
          wide_args.packed_b = floats.data();
          kernels.part(wide_args, {0, m, 0, kernels.Panels(n)});
          GemmArgs args = p.Args(Activation::kGelu);
          args.packed_b = packed.data();
          for (const int64_t tiles : {0, 4, 16}) {
            args.blocking.narrow_tiles = tiles;
            for (int share = 0; share < 3; ++share) {
              part(args, kernels.Partition(m, n, false, 3, share));
            }
            ASSERT_EQ(p.result(), wide.result());
          }
          p.Check(args);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(GemmTest, UnpackedProductEqualsPlainLoop) {
  uint32_t seed = 1;
  for (bool transposed : {false, true}) {
    for (int64_t m : {1, 8, 17}) {
      for (int64_t n : {1, 30, 48, 100}) {
        for (int64_t k : {0, 1, 33, 2050}) {
          SCOPED_TRACE(testing::Message() << "m " << m << " n " << n << " k " << k);
          GuardedProduct p({m, k, n}, ++seed, transposed);
          AlignedBuffer scratch(sizeof(float) * kernels().UnpackedScratchFloats(k));
          UnpackedGemmArgs args{.gemm = p.Args(Activation::kNone),
                                .b = p.Source(),
                                .scratch = reinterpret_cast<float*>(scratch.data())};
          kernels().unpacked(args, {0, m, 0, kernels().Panels(n)});
          p.Check(args.gemm);
          args.scale = -0.75f;
          kernels().unpacked(args, {0, m, 0, kernels().Panels(n)});
          p.Check(args.gemm, args.scale);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, GemmTest, testing::ValuesIn(UnitTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
