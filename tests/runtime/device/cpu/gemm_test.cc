#include "runtime/device/cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/graph/tensor.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

struct Case {
  int64_t m, k, n;
};

double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

// A product with everything around it that a kernel must not touch or may not rely on: strides
// wider than the rows and canaries in the gaps of C.
class Product {
 public:
  Product(const Case& c, uint32_t seed, bool transposed, bool int8 = false)
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
    if (const GemmKernels* kernels = TileGemmKernelsFor(DetectIsa())) {
      scratch_ = AlignedBuffer(static_cast<size_t>(kernels->PartScratchBytes(m, k, int8)));
    }
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
struct Int8Product : Product {
  // `int8`: whether they are multiplied as they are, or as the floats.
  Int8Product(const Case& c, uint32_t seed, bool transposed, bool int8 = true)
      : Product(c, seed, transposed, int8) {
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

// Of kAmx the kernels of the tile unit.
class GemmTest : public testing::TestWithParam<Isa> {
 protected:
  const GemmKernels& kernels() const {
    const GemmKernels* tiles = TileGemmKernelsFor(GetParam());
    return tiles == nullptr ? GemmKernelsFor(GetParam()) : *tiles;
  }
  AlignedBuffer PackB(const Product& p, float scale = 1) const {
    AlignedBuffer packed(sizeof(float) * static_cast<size_t>(kernels().PackedFloats(p.k, p.n)));
    kernels().pack(p.Source(), p.k, p.n, scale, reinterpret_cast<float*>(packed.data()));
    return packed;
  }
};

TEST_P(GemmTest, PackedProductEqualsPlainLoopForAnyShape) {
  uint32_t seed = 1;
  for (int64_t m : {1, 2, 3, 5, 6, 7, 8, 9, 11, 16, 23, 130}) {
    for (int64_t n : {1, 7, 15, 16, 17, 31, 47, 48, 49, 97}) {
      for (int64_t k : {1, 2, 13, 64}) {
        SCOPED_TRACE(testing::Message() << "m " << m << " n " << n << " k " << k);
        ++seed;
        Product p({m, k, n}, seed, seed % 2 == 0);
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
    Product p(c, 3, false);
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
        Activation::kTanh, Activation::kSigmoid, Activation::kSilu}) {
    SCOPED_TRACE(static_cast<int>(activation));
    Product p({13, 20, 101}, 7, true);
    const AlignedBuffer packed = PackB(p);
    GemmArgs args = p.Args(activation);
    args.packed_b = packed.data();
    kernels().part(args, {0, 13, 0, kernels().Panels(101)});
    p.Check(args);
  }
}

TEST_P(GemmTest, ResidualMayBeTheResultItself) {
  Product p({10, 2100, 96}, 9, false);
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

TEST_P(GemmTest, PackMultipliesByScale) {
  Product p({4, 30, 33}, 11, false);
  const AlignedBuffer packed = PackB(p, 0.25f);
  GemmArgs args = p.Args(Activation::kNone);
  args.packed_b = packed.data();
  kernels().part(args, {0, 4, 0, kernels().Panels(33)});
  p.Check(args, 0.25);
}

TEST_P(GemmTest, PartsOfAnyPartitionGiveTheSameBits) {
  for (const Case& c : {Case{37, 70, 200}, Case{1, 64, 500}, Case{300, 16, 10}}) {
    Product whole(c, 5, false);
    const AlignedBuffer packed = PackB(whole);
    GemmArgs args = whole.Args(Activation::kGelu);
    args.packed_b = packed.data();
    kernels().part(args, {0, c.m, 0, kernels().Panels(c.n)});
    for (int parts : {1, 2, 3, 7, 16}) {
      Product divided(c, 5, false);
      GemmArgs part_args = divided.Args(Activation::kGelu);
      part_args.packed_b = packed.data();
      for (int part = 0; part < parts; ++part) {
        kernels().part(part_args, kernels().Partition(c.m, c.n, false, parts, part));
      }
      ASSERT_THAT(divided.result(), testing::ElementsAreArray(whole.result())) << parts << " parts";
    }
  }
}

// How many mates there are decides whether k is cut into stretches, and which.
TEST_P(GemmTest, RowsDoNotDependOnTheirMates) {
  for (const Case& c : {Case{9, 100, 60}, Case{9, 1300, 60}, Case{21, 1300, 60}, Case{70, 420, 60},
                        Case{130, 700, 60}}) {
    SCOPED_TRACE(testing::Message() << c.m << " x " << c.k);
    Product p(c, 5, false);
    const AlignedBuffer packed = PackB(p);
    GemmArgs args = p.Args(Activation::kNone);
    args.packed_b = packed.data();
    kernels().part(args, {0, c.m, 0, kernels().Panels(c.n)});
    const std::vector<float> together = p.result();
    for (int64_t row = 0; row < c.m; ++row) {
      kernels().part(args, {row, row + 1, 0, kernels().Panels(c.n)});
    }
    EXPECT_EQ(together, p.result());
  }
}

TEST_P(GemmTest, PartsAreBalanced) {
  for (const Case& c : {Case{512, 384, 384}, Case{8, 384, 1536}, Case{128, 1536, 384}}) {
    for (const bool int8 : {false, true}) {
      for (int parts : {1, 2, 4, 8}) {
        int64_t largest = 0;
        for (int part = 0; part < parts; ++part) {
          const GemmPart g = kernels().Partition(c.m, c.n, int8, parts, part);
          largest = std::max(largest, (g.row_end - g.row_begin) * (g.panel_end - g.panel_begin));
        }
        EXPECT_LE(largest * parts, c.m * kernels().Panels(c.n) * 5 / 3)
            << "m " << c.m << " n " << c.n << " parts " << parts << (int8 ? ", int8" : "");
      }
    }
  }
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

TEST_P(GemmTest, Int8RowsDoNotDependOnTheirMatesNorOnThePartition) {
  const Case c = {37, 300, 200};
  Int8Product whole(c, 5, false);
  AlignedBuffer packed(static_cast<size_t>(kernels().PackedInt8Bytes(c.k, c.n)));
  kernels().pack_int8(whole.Int8(), c.k, c.n, 0.5f, packed.data());
  GemmArgs args = whole.Args(Activation::kGelu);
  args.packed_b = packed.data();
  kernels().part_int8(args, {0, c.m, 0, kernels().Panels(c.n)});
  Int8Product divided(c, 5, false);
  GemmArgs part_args = divided.Args(Activation::kGelu);
  part_args.packed_b = packed.data();
  for (int part = 0; part < 3; ++part) {
    kernels().part_int8(part_args, kernels().Partition(c.m, c.n, true, 3, part));
  }
  ASSERT_THAT(divided.result(), testing::ElementsAreArray(whole.result()));
  for (int64_t row = 0; row < c.m; ++row) {
    kernels().part_int8(part_args, {row, row + 1, 0, kernels().Panels(c.n)});
  }
  ASSERT_THAT(divided.result(), testing::ElementsAreArray(whole.result()));
  // Nor on the walk.
  for (const GemmBlocking& blocking :
       {GemmBlocking{.narrow_tiles = 0}, GemmBlocking{.narrow_tiles = 16},
        GemmBlocking{.row_tiles = 2}, GemmBlocking{.row_tiles = 1, .narrow_tiles = 0}}) {
    Int8Product walked(c, 5, false);
    GemmArgs walk_args = walked.Args(Activation::kGelu);
    walk_args.packed_b = packed.data();
    walk_args.blocking = blocking;
    kernels().part_int8(walk_args, {0, c.m, 0, kernels().Panels(c.n)});
    ASSERT_THAT(walked.result(), testing::ElementsAreArray(whole.result()));
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
          Product p({m, k, n}, seed, seed % 2 == 0);
          std::vector<uint16_t> halves;
          for (float& value : p.b) {
            halves.push_back(f16 ? FloatToHalf(value) : FloatToBFloat16(value));
            value = f16 ? HalfToFloat(halves.back()) : BFloat16ToFloat(halves.back());
          }
          Product wide({m, k, n}, seed, seed % 2 == 0);
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

TEST_P(GemmTest, InfinityNoNumberAndLargeNumbersStayInTheirRows) {
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
        static_cast<size_t>(int8 ? kernels().PackedInt8Bytes(p.k, p.n)
                                 : kernels().PackedFloats(p.k, p.n) * sizeof(float)));
    GemmArgs args = p.Args(Activation::kNone);
    args.packed_b = packed.data();
    args.bias = nullptr;
    args.residual = nullptr;
    if (int8) {
      kernels().pack_int8(p.Int8(), p.k, p.n, 1, packed.data());
      kernels().part_int8(args, {0, p.m, 0, kernels().Panels(p.n)});
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

TEST_P(GemmTest, InfinityAndNoNumberAmongTheWeightsStayInTheirColumns) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t m : {5, 40, 70}) {
    const Case c = {m, 70, 60};
    Product finite(c, 5, false);
    Product p(c, 5, false);
    p.b[7 * p.ldb + 11] = -kInfinity;
    p.b[8 * p.ldb + 50] = std::numeric_limits<float>::quiet_NaN();
    // Times numbers of both signs: infinity less infinity in half of the rows.
    p.b[3 * p.ldb + 30] = kInfinity;
    p.b[4 * p.ldb + 30] = kInfinity;
    for (Product* product : {&finite, &p}) {
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

TEST_P(GemmTest, UnpackedProductEqualsPlainLoop) {
  uint32_t seed = 1;
  for (bool transposed : {false, true}) {
    for (int64_t m : {1, 8, 17}) {
      for (int64_t n : {1, 30, 48, 100}) {
        for (int64_t k : {0, 1, 33, 2050}) {
          SCOPED_TRACE(testing::Message() << "m " << m << " n " << n << " k " << k);
          Product p({m, k, n}, ++seed, transposed);
          AlignedBuffer scratch(sizeof(float) * kernels().UnpackedScratchFloats(k));
          UnpackedGemmArgs args{.gemm = p.Args(Activation::kNone),
                                .b = p.Source(),
                                .scratch = reinterpret_cast<float*>(scratch.data())};
          kernels().unpacked(args, {0, m, 0, kernels().Panels(n)});
          p.Check(args.gemm);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, GemmTest, testing::ValuesIn(TiersWithTiles()), TierName);

}  // namespace
}  // namespace reprise::cpu
