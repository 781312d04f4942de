#include "runtime/device/cpu/gemm/gemm_bf16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/graph/tensor.h"
#include "tests/runtime/device/cpu/emulated/kernels.h"

namespace reprise::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float Rounded(float x) { return BFloat16ToFloat(FloatToBFloat16(x)); }

struct NamedKernels {
  const char* name;
  const Bf16Kernels* kernels;
};

// Returns all that this machine has.
std::vector<NamedKernels> AllKernels() {
  std::vector<NamedKernels> all = {{"baseline", &Bf16KernelsFor(Isa::kBaseline)}};
  if (UsableIsa(Isa::kAvx2) == Isa::kAvx2) all.push_back({"avx2", &Bf16KernelsFor(Isa::kAvx2)});
  if (UsableIsa(Isa::kAvx512) == Isa::kAvx512)
    all.push_back({"avx512", &Bf16KernelsFor(Isa::kAvx512)});
  if (const Bf16Kernels* dot = Bf16DotKernelsFor(DetectIsa())) all.push_back({"dot", dot});
  if (const Bf16Kernels* tile = TileBf16KernelsFor(DetectIsa())) all.push_back({"tile", tile});
  if (const Bf16Kernels* tile = EmulatedBf16KernelsFor(EmulatedIsa())) {
    all.push_back({"emulated_tile", tile});
  }
  return all;
}

// A product with strides wider than its rows and canaries in the gaps of C.
struct Bf16Product {
  Bf16Product(int64_t m, int64_t k, int64_t n, uint32_t seed, bool transposed)
      : m(m),
        k(k),
        n(n),
        lda(k + 3),
        ldb((transposed ? k : n) + 2),
        ldc(n + 5),
        ldr(n + 1),
        transposed(transposed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill = [&](std::vector<float>& v, int64_t count) {
      v.resize(static_cast<size_t>(count));
      for (float& x : v) x = uniform(random);
    };
    fill(a, m * lda);
    fill(b, (transposed ? n : k) * ldb);
    fill(bias, n);
    fill(residual, m * ldr);
    c.assign(static_cast<size_t>(m * ldc), kCanary);
  }

  float& B(int64_t i, int64_t j) { return b[transposed ? j * ldb + i : i * ldb + j]; }

  void Pack(const Bf16Kernels& kernels) {
    packed = AlignedBuffer(static_cast<size_t>(kernels.PackedBytes(k, n)));
    kernels.pack({b.data(), ldb, transposed}, k, n, packed.data());
  }
  GemmArgs Args(Activation activation = Activation::kNone) {
    return {.a = a.data(),
            .lda = lda,
            .packed_b = packed.data(),
            .c = c.data(),
            .ldc = ldc,
            .n = n,
            .k = k,
            .bias = bias.data(),
            .residual = residual.data(),
            .ld_residual = ldr,
            .activation = activation};
  }
  // Runs every part with scratch of its own size.
  void Run(const Bf16Kernels& kernels, GemmArgs args, const float* scales = nullptr,
           int parts = 1) {
    for (int part = 0; part < parts; ++part) {
      AlignedBuffer scratch(static_cast<size_t>(kernels.part_scratch_bytes(m, k)));
      args.scratch = scratch.data();
      kernels.part(args, scales, kernels.Partition(m, n, parts, part));
    }
  }
  // Sum of products of rounded numbers, and of their magnitudes.
  std::pair<double, double> Sum(int64_t i, int64_t j) {
    double sum = 0, magnitude = 0;
    for (int64_t p = 0; p < k; ++p) {
      const double product = static_cast<double>(Rounded(a[i * lda + p])) * Rounded(B(p, j));
      sum += product;
      magnitude += std::fabs(product);
    }
    return {sum, magnitude};
  }
  void Check(const GemmArgs& args) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < ldc; ++j) {
        const float got = c[static_cast<size_t>(i * ldc + j)];
        if (j >= n) {
          ASSERT_EQ(got, kCanary) << "row " << i << " column " << j << " is behind the matrix";
          continue;
        }
        auto [sum, magnitude] = Sum(i, j);
        if (args.bias != nullptr) sum += bias[j];
        if (args.activation == Activation::kRelu) sum = std::max(sum, 0.0);
        if (args.activation == Activation::kGelu) sum = 0.5 * sum * std::erfc(-sum / std::sqrt(2));
        if (args.activation == Activation::kTanh) sum = std::tanh(sum);
        if (args.residual != nullptr) sum += residual[i * ldr + j];
        ASSERT_NEAR(got, sum, 1e-6 * (3 + magnitude)) << "row " << i << " column " << j;
      }
    }
  }

  static constexpr float kCanary = 12345.0f;
  int64_t m, k, n, lda, ldb, ldc, ldr;
  bool transposed;
  std::vector<float> a, b, bias, residual, c;
  AlignedBuffer packed;
};

class GemmBf16Test : public testing::TestWithParam<NamedKernels> {
 protected:
  const Bf16Kernels& kernels() const { return *GetParam().kernels; }
};

TEST_P(GemmBf16Test, ProductEqualsPlainLoopOverRoundedOperandsForAnyShape) {
  uint32_t seed = 1;
  for (int64_t m : {1, 2, 3, 7, 11, 12, 13, 15, 16, 17, 31, 32, 33, 47, 48, 49, 101}) {
    for (int64_t n : {1, 7, 15, 16, 17, 31, 32, 33, 47, 64, 97}) {
      for (int64_t k : {1, 2, 13, 31, 32, 33, 64, 67}) {
        SCOPED_TRACE(testing::Message() << "m " << m << " n " << n << " k " << k);
        ++seed;
        Bf16Product p(m, k, n, seed, seed % 2 == 0);
        p.Pack(kernels());
        GemmArgs args = p.Args(seed % 7 == 0 ? Activation::kGelu : Activation::kNone);
        if (seed % 3 == 0) args.bias = nullptr;
        if (seed % 5 == 0) args.residual = nullptr;
        p.Run(kernels(), args);
        p.Check(args);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(GemmBf16Test, DeepAndLongProductsUseAllOfTheScratch) {
  for (const auto& [m, k] : {std::pair<int64_t, int64_t>{19, 5000}, {700, 1100}, {3, 70000}}) {
    SCOPED_TRACE(testing::Message() << "m " << m << " k " << k);
    Bf16Product p(m, k, 35, 3, false);
    p.Pack(kernels());
    const GemmArgs args = p.Args(Activation::kRelu);
    p.Run(kernels(), args);
    p.Check(args);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GemmBf16Test, EveryActivationAndPartialColumnsAreFinished) {
  for (Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kTanh}) {
    SCOPED_TRACE(static_cast<int>(activation));
    Bf16Product p(45, 20, 109, 7, true);
    p.Pack(kernels());
    const GemmArgs args = p.Args(activation);
    p.Run(kernels(), args);
    p.Check(args);
  }
}

TEST_P(GemmBf16Test, NoBitOfARowDependsOnTheOthersNorOnTheDivision) {
  for (const auto& [m, k, n] :
       {std::tuple<int64_t, int64_t, int64_t>{77, 131, 203}, {65, 384, 96}}) {
    Bf16Product whole(m, k, n, 5, false);
    whole.Pack(kernels());
    whole.Run(kernels(), whole.Args(Activation::kTanh));
    for (int parts : {2, 3, 7}) {
      Bf16Product divided(m, k, n, 5, false);
      divided.Pack(kernels());
      divided.Run(kernels(), divided.Args(Activation::kTanh), nullptr, parts);
      EXPECT_EQ(divided.c, whole.c) << parts << " parts";
    }
    for (int64_t row : {int64_t{0}, int64_t{17}, m - 1}) {
      Bf16Product alone(1, k, n, 5, false);
      std::copy_n(whole.a.begin() + row * whole.lda, k, alone.a.begin());
      std::copy_n(whole.residual.begin() + row * whole.ldr, n, alone.residual.begin());
      alone.bias = whole.bias;
      alone.b = whole.b;
      alone.Pack(kernels());
      alone.Run(kernels(), alone.Args(Activation::kTanh));
      EXPECT_TRUE(
          std::equal(alone.c.begin(), alone.c.begin() + n, whole.c.begin() + row * whole.ldc))
          << "row " << row;
    }
  }
}

TEST_P(GemmBf16Test, Int8WeightsAreExactAndScaledByColumn) {
  for (const bool transposed : {false, true}) {
    const int64_t m = 21, k = 50, n = 41;
    Bf16Product p(m, k, n, 11, transposed);
    std::mt19937 random(3);
    std::vector<int8_t> values(p.b.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
      p.b[i] = values[i];
    }
    std::vector<float> scales(static_cast<size_t>(kernels().Panels(n) * kernels().panel_columns));
    for (int64_t j = 0; j < n; ++j) scales[j] = 0.001f * static_cast<float>(1 + j % 9);
    p.packed = AlignedBuffer(static_cast<size_t>(kernels().PackedBytes(k, n)));
    kernels().pack_int8({values.data(), p.ldb, transposed}, k, n, p.packed.data());
    GemmArgs args = p.Args();
    args.residual = nullptr;
    p.Run(kernels(), args, scales.data());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const auto [sum, magnitude] = p.Sum(i, j);
        ASSERT_NEAR(p.c[i * p.ldc + j], sum * scales[j] + p.bias[j],
                    1e-6 * (3 + magnitude * scales[j]));
      }
    }
    // The factor and the bias are two roundings in tiles of any number of rows.
    const std::vector<float> together = p.c, rows = p.a;
    for (int64_t first = 0; first < m; ++first) {
      Bf16Product fewer(m - first, k, n, 11, transposed);
      std::copy(rows.begin() + first * p.lda, rows.begin() + (m - 1) * p.lda + k, fewer.a.begin());
      fewer.bias = p.bias;
      fewer.packed = AlignedBuffer(static_cast<size_t>(kernels().PackedBytes(k, n)));
      kernels().pack_int8({values.data(), p.ldb, transposed}, k, n, fewer.packed.data());
      GemmArgs of_fewer = fewer.Args();
      of_fewer.residual = nullptr;
      fewer.Run(kernels(), of_fewer, scales.data());
      for (int64_t i = first; i < m; ++i) {
        ASSERT_TRUE(std::equal(fewer.c.begin() + (i - first) * fewer.ldc,
                               fewer.c.begin() + (i - first) * fewer.ldc + n,
                               together.begin() + i * p.ldc))
            << "row " << i << " of " << m - first << " rows";
      }
    }
  }
}

TEST_P(GemmBf16Test, RoundsToTheNearestAndToEvenWhereTwoAreAsNear) {
  // 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between odd and even the other way.
  const float ties[] = {1.00390625f, 1.01171875f, -1.00390625f, 1.0039063f, 1.0039062f};
  for (const float x : ties) {
    Bf16Product p(1, 1, 1, 1, false);
    p.a[0] = x;
    p.b[0] = 1;
    p.Pack(kernels());
    GemmArgs args = p.Args();
    args.bias = args.residual = nullptr;
    p.Run(kernels(), args);
    EXPECT_EQ(p.c[0], Rounded(x)) << x;
    p.a[0] = 1;
    p.b[0] = x;
    p.Pack(kernels());
    args.packed_b = p.packed.data();
    p.Run(kernels(), args);
    EXPECT_EQ(p.c[0], Rounded(x)) << x;
  }
}

TEST_P(GemmBf16Test, InfinityAndNoNumberAreThoseOfFloatArithmeticAndStayInTheirRow) {
  const int64_t m = 35, k = 40, n = 37;
  Bf16Product p(m, k, n, 9, false);
  p.a[3 * p.lda + 5] = kInfinity;
  p.a[7 * p.lda + 5] = -kInfinity;
  p.a[9 * p.lda + 39] = std::numeric_limits<float>::quiet_NaN();
  p.a[11 * p.lda] = std::numeric_limits<float>::max();  // rounds to infinity
  p.a[13 * p.lda + 1] = kInfinity;
  p.B(1, 4) = 0;  // times infinity
  // A payload that rounding alone would carry into the sign.
  const uint32_t odd_nan = 0x7FFFFFFF;
  std::memcpy(&p.a[15 * p.lda], &odd_nan, sizeof(float));
  p.Pack(kernels());
  const GemmArgs args = p.Args();
  p.Run(kernels(), args);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double sum = p.Sum(i, j).first;
      const float got = p.c[i * p.ldc + j];
      SCOPED_TRACE(testing::Message() << "row " << i << " column " << j);
      if (std::isnan(sum)) {
        EXPECT_TRUE(std::isnan(got));
      } else if (std::isinf(sum)) {
        EXPECT_EQ(got, static_cast<float>(sum));
      } else {
        EXPECT_TRUE(std::isfinite(got));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, GemmBf16Test, testing::ValuesIn(AllKernels()),
                         [](const auto& info) { return std::string(info.param.name); });

// Timing may choose between them, from one bucket to the next.
TEST(GemmBf16Test, WideningAndTheVectorsOwnProductsGiveTheSameBits) {
  const Bf16Kernels* dot = Bf16DotKernelsFor(DetectIsa());
  if (dot == nullptr) return;
  Bf16Product widened(29, 211, 75, 13, false), multiplied(29, 211, 75, 13, false);
  widened.Pack(Bf16KernelsFor(Isa::kAvx512));
  multiplied.Pack(*dot);
  widened.Run(Bf16KernelsFor(Isa::kAvx512), widened.Args());
  multiplied.Run(*dot, multiplied.Args());
  EXPECT_EQ(widened.c, multiplied.c);
}

}  // namespace
}  // namespace reprise::cpu
