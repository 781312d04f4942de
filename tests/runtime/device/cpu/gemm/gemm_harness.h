// Products with their operands, and their results by a plain loop.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "tests/runtime/device/cpu/emulated/kernels.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {

struct Case {
  int64_t m, k, n;
};

// Returns ProductTiers(), and the tile unit's by its emulation where the machine has none.
inline std::vector<Isa> UnitTiers() {
  std::vector<Isa> tiers = ProductTiers();
  if (EmulatedIsa() == Isa::kAmx && tiers.back() != Isa::kAmx) tiers.push_back(Isa::kAmx);
  return tiers;
}
// Returns the tile unit's kernels, or their emulation's where the machine has none; null for other
// tiers.
inline const GemmKernels* UnitGemmKernelsFor(Isa isa) {
  return UsableIsa(isa) == isa ? TileGemmKernelsFor(isa) : EmulatedGemmKernelsFor(isa);
}

inline double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGelu:
    case Activation::kGeluDoubled:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
    case Activation::kGeluTanhDoubled:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kQuickGelu:
      return x / (1 + std::exp(-1.702 * x));
  }
  return x;
}

// A product with everything around it that a kernel must not touch or may not rely on: strides
// wider than the rows and canaries in the gaps of C.
class GuardedProduct {
 public:
  GuardedProduct(const Case& c, uint32_t seed, bool transposed, bool int8 = false)
      : m(c.m), k(c.k), n(c.n), lda(k + 3), ldc(n + 5), ldr(n + 1), transposed_(transposed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill = [&](std::vector<float>& v, int64_t count) {
      v.resize(static_cast<size_t>(count));
      for (float& x : v) x = uniform(random);
    };
    ldb = (transposed ? k : n) + 2;
    fill(a, m * lda);
    fill(b, (transposed ? n : k) * ldb);
    fill(bias, n);
    fill(residual, m * ldr);
    c_.assign(static_cast<size_t>(m * ldc), kCanary);
    int64_t bytes = 0;
    for (Isa isa : UnitTiers()) {
      for (const GemmKernels* kernels : {UnitGemmKernelsFor(isa), DigitGemmKernelsFor(isa)}) {
        if (kernels != nullptr) bytes = std::max(bytes, kernels->PartScratchBytes(m, k, int8));
      }
    }
    scratch_ = AlignedBuffer(static_cast<size_t>(bytes));
  }

  GemmSource Source() const { return {b.data(), ldb, transposed_}; }
  GemmArgs Args(Activation activation) {
    return {.a = a.data(),
            .lda = lda,
            .c = c_.data(),
            .ldc = ldc,
            .n = n,
            .k = k,
            .bias = bias.data(),
            .residual = residual.data(),
            .ld_residual = ldr,
            .activation = activation,
            .scratch = scratch_.data()};
  }
  void Check(const GemmArgs& args, double scale = 1) const {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < ldc; ++j) {
        const float got = c_[static_cast<size_t>(i * ldc + j)];
        if (j >= n) {
          ASSERT_EQ(got, kCanary) << "row " << i << " column " << j << " is behind the matrix";
          continue;
        }
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += scale * a[i * lda + p] * (transposed_ ? b[j * ldb + p] : b[p * ldb + j]);
        }
        if (args.bias != nullptr) sum += bias[j];
        sum = Apply(args.activation, sum);
        if (args.residual != nullptr) sum += residual[i * ldr + j];
        ASSERT_NEAR(got, sum, 3e-6 * (4 + std::sqrt(static_cast<double>(k))))
            << "row " << i << " column " << j;
      }
    }
  }
  const std::vector<float>& result() const { return c_; }

  static constexpr float kCanary = 12345.0f;
  int64_t m, k, n, lda, ldc, ldr, ldb;
  std::vector<float> a, b, bias, residual;

 private:
  bool transposed_;
  std::vector<float> c_;
  AlignedBuffer scratch_;
};

// Int8 weights with factors, and the floats that they stand for.
struct Int8Product : GuardedProduct {
  // `int8`: whether they are multiplied as they are, or as the floats.
  Int8Product(const Case& c, uint32_t seed, bool transposed, bool int8 = true)
      : GuardedProduct(c, seed, transposed, int8) {
    std::mt19937 random(seed);
    scales.resize(static_cast<size_t>(c.n));
    for (float& scale : scales) scale = 0.001f * static_cast<float>(1 + random() % 9);
    values.resize(b.size());
    for (size_t i = 0; i < b.size(); ++i) {
      values[i] = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
      const size_t column = (transposed ? i / ldb : i % ldb);
      b[i] = column < scales.size() ? values[i] * scales[column] : 0;
    }
  }
  Int8Source Int8() const { return {values.data(), ldb, Source().transposed, scales.data()}; }

  std::vector<int8_t> values;
  std::vector<float> scales;
};

// The kernels of a tier; the tile unit's for kAmx.
class GemmOfTier : public testing::TestWithParam<Isa> {
 protected:
  const GemmKernels& kernels() const {
    const GemmKernels* tiles = UnitGemmKernelsFor(GetParam());
    return tiles == nullptr ? GemmKernelsFor(GetParam()) : *tiles;
  }
  // Weights stored as int8: by digits on the tiers with products of bytes but no tile unit.
  const GemmKernels& int8_kernels() const {
    const GemmKernels* tiles = UnitGemmKernelsFor(GetParam());
    const GemmKernels* digits = DigitGemmKernelsFor(GetParam());
    return tiles != nullptr || digits == nullptr ? kernels() : *digits;
  }
  AlignedBuffer PackB(const GuardedProduct& p, float scale = 1) const {
    AlignedBuffer packed(sizeof(float) * static_cast<size_t>(kernels().PackedFloats(p.k, p.n)));
    kernels().pack(p.Source(), p.k, p.n, scale, reinterpret_cast<float*>(packed.data()));
    return packed;
  }
};

}  // namespace reprise::cpu
