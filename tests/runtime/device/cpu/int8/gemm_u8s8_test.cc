#include "runtime/device/cpu/int8/gemm_u8s8.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "tests/runtime/device/cpu/emulated/kernels.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

struct Case {
  int64_t m, k, n;
};

// Which side has a sign.
struct Signs {
  bool a, b;
};
constexpr Signs kAllSigns[] = {{false, true}, {false, false}, {true, true}, {true, false}};

// How many zero points or scales a side has.
enum class Many { kNone, kOne, kEach };
constexpr Many kAllMany[] = {Many::kNone, Many::kOne, Many::kEach};

int Value(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

// A product with strides wider than its rows, canaries in the gaps of C, and A ending with its
// memory.
class Product {
 public:
  Product(const Case& c, Signs signs, uint32_t seed, Many zeros_of_a = Many::kNone,
          Many zeros_of_b = Many::kNone)
      : m(c.m), k(c.k), n(c.n), lda(k + 3), ldb(n + 2), ldc(n + 5), ldr(n + 1), signs(signs) {
    std::mt19937 random(seed);
    const auto fill = [&](std::vector<uint8_t>& v, int64_t count) {
      v.resize(static_cast<size_t>(std::max<int64_t>(count, 0)));
      for (uint8_t& x : v) x = static_cast<uint8_t>(random());
      v.shrink_to_fit();
    };
    fill(a, (m - 1) * lda + k);
    fill(b, (k - 1) * ldb + n);
    fill(a_zero, m);
    fill(b_zero, n);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill_floats = [&](std::vector<float>& v, int64_t count, float by) {
      v.resize(static_cast<size_t>(count));
      for (float& x : v) x = by * uniform(random);
    };
    fill_floats(a_scale, m, 0.01f);
    fill_floats(b_scale, n, 0.01f);
    fill_floats(bias, n, 1);
    fill_floats(residual, m * ldr, 1);
    c_.assign(static_cast<size_t>(m * ldc), kCanary);
    args_ = {.a = a.data(),
             .lda = lda,
             .a_signed = signs.a,
             .b_signed = signs.b,
             .c = c_.data(),
             .ldc = ldc,
             .n = n,
             .k = k,
             .a_zero = Points(a_zero, zeros_of_a, signs.a),
             .b_zero = Points(b_zero, zeros_of_b, signs.b)};
  }

  ByteSource Source() const { return {b.data(), ldb, signs.b}; }
  // Sums as they are.
  U8S8Args Integers() { return args_; }
  U8S8Args Floats(Many scales_of_a, Many scales_of_b, Activation activation = Activation::kNone) {
    U8S8Args args = args_;
    args.a_scale = a_scale.data();
    args.a_scale_step = scales_of_a == Many::kEach;
    args.b_scale = b_scale.data();
    args.b_scale_step = scales_of_b == Many::kEach;
    args.bias = bias.data();
    args.residual = residual.data();
    args.ld_residual = ldr;
    args.activation = activation;
    return args;
  }
  void Run(const U8S8Kernels& kernels, U8S8Args args, int parts = 1) {
    AlignedBuffer packed(static_cast<size_t>(kernels.PackedBytes(k, n)));
    kernels.pack(Source(), signs.a, k, n, packed.data());
    args.packed_b = packed.data();
    for (int part = 0; part < parts; ++part) {
      kernels.part(args, kernels.Partition(m, n, parts, part));
    }
  }
  void RunUnpacked(const U8S8Kernels& kernels, const U8S8Args& args, int parts = 1) {
    AlignedBuffer scratch(static_cast<size_t>(kernels.PanelBytes(k)));
    for (int part = 0; part < parts; ++part) {
      kernels.unpacked(args, Source(), kernels.Partition(m, n, parts, part), scratch.data());
    }
  }

  int64_t Sum(const U8S8Args& args, int64_t i, int64_t j) const {
    int64_t sum = 0;
    const int zero_of_a = args.a_zero.At(i), zero_of_b = args.b_zero.At(j);
    for (int64_t p = 0; p < k; ++p) {
      sum += int64_t{Value(a[i * lda + p], signs.a) - zero_of_a} *
             (Value(b[p * ldb + j], signs.b) - zero_of_b);
    }
    return sum;
  }
  void Check(const U8S8Args& args) const {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < ldc; ++j) {
        const uint32_t bits = c_[static_cast<size_t>(i * ldc + j)];
        if (j >= n) {
          ASSERT_EQ(bits, kCanary) << "row " << i << " column " << j << " is behind the matrix";
          continue;
        }
        const auto sum = static_cast<int32_t>(Sum(args, i, j));
        if (args.a_scale == nullptr) {
          ASSERT_EQ(static_cast<int32_t>(bits), sum) << "row " << i << " column " << j;
          continue;
        }
        float got;
        std::memcpy(&got, &bits, sizeof(got));
        float wanted = static_cast<float>(sum) *
                       (args.a_scale[i * args.a_scale_step] * args.b_scale[j * args.b_scale_step]);
        const float magnitude = std::fabs(wanted);
        if (args.bias != nullptr) wanted += bias[j];
        if (args.activation == Activation::kRelu) wanted = std::max(wanted, 0.0f);
        if (args.activation == Activation::kTanh) wanted = std::tanh(wanted);
        if (args.activation == Activation::kGelu) {
          wanted = static_cast<float>(0.5 * wanted * std::erfc(-wanted / std::sqrt(2.0)));
        }
        if (args.residual != nullptr) wanted += residual[i * ldr + j];
        ASSERT_NEAR(got, wanted, 1e-6f * (3 + magnitude)) << "row " << i << " column " << j;
      }
    }
  }
  const std::vector<uint32_t>& result() const { return c_; }

  static constexpr uint32_t kCanary = 0x5a5a5a5a;
  int64_t m, k, n, lda, ldb, ldc, ldr;
  Signs signs;
  std::vector<uint8_t> a, b, a_zero, b_zero;
  std::vector<float> a_scale, b_scale, bias, residual;

 private:
  static BytePoints Points(const std::vector<uint8_t>& points, Many many, bool is_signed) {
    if (many == Many::kNone) return {};
    return {points.data(), many == Many::kEach, is_signed};
  }

  U8S8Args args_;
  std::vector<uint32_t> c_;
};

struct ByteForm {
  std::string name;
  const U8S8Kernels* kernels;
};
void PrintTo(const ByteForm& form, std::ostream* out) { *out << form.name; }

// Returns the kernels of all tiers, and the tile unit's or its emulation.
std::vector<ByteForm> ByteForms() {
  std::vector<ByteForm> forms;
  const auto add = [&](std::string name, const U8S8Kernels* kernels) {
    if (kernels != nullptr) forms.push_back({std::move(name), kernels});
  };
  for (Isa isa : EveryTier()) {
    add(std::string(IsaName(isa)), &U8S8KernelsFor(isa));
    add("unit_" + std::string(IsaName(isa)), TileU8S8KernelsFor(isa));
  }
  add("emulated_unit", EmulatedU8S8KernelsFor(EmulatedIsa()));
  return forms;
}

class GemmU8S8Test : public testing::TestWithParam<ByteForm> {
 protected:
  const U8S8Kernels& kernels() const { return *GetParam().kernels; }
  // Returns whether it takes unpacked weights: the tile unit takes packed ones alone.
  bool takes_unpacked() const { return kernels().unpacked != nullptr; }
};

TEST_P(GemmU8S8Test, SumsEqualPlainLoopForAnyShapeSignAndZeroPoint) {
  uint32_t seed = 1;
  for (int64_t m : {1, 2, 3, 5, 7, 8, 9, 11, 16, 23, 130, 150}) {
    for (int64_t n : {1, 7, 15, 16, 17, 31, 33, 47, 48, 49, 97}) {
      for (int64_t k : {1, 2, 3, 4, 7, 13, 64, 130}) {
        ++seed;
        const Signs signs = kAllSigns[seed % 4];
        const Many zeros_of_a = kAllMany[seed / 4 % 3], zeros_of_b = kAllMany[seed / 12 % 3];
        SCOPED_TRACE(testing::Message()
                     << "m " << m << " n " << n << " k " << k << " seed " << seed);
        Product packed({m, k, n}, signs, seed, zeros_of_a, zeros_of_b);
        packed.Run(kernels(), packed.Integers());
        packed.Check(packed.Integers());
        if (!takes_unpacked()) continue;
        Product unpacked({m, k, n}, signs, seed, zeros_of_a, zeros_of_b);
        unpacked.RunUnpacked(kernels(), unpacked.Integers());
        ASSERT_EQ(packed.result(), unpacked.result());
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(GemmU8S8Test, EveryPairOfSignsAndZeroPointsIsExact) {
  for (const Signs signs : kAllSigns) {
    for (const Many zeros_of_a : kAllMany) {
      for (const Many zeros_of_b : kAllMany) {
        SCOPED_TRACE(testing::Message() << signs.a << signs.b << static_cast<int>(zeros_of_a)
                                        << static_cast<int>(zeros_of_b));
        Product p({19, 150, 70}, signs, 3, zeros_of_a, zeros_of_b);
        p.Run(kernels(), p.Integers());
        p.Check(p.Integers());
      }
    }
  }
}

// A pair of such products saturates where it is summed in int16.
TEST_P(GemmU8S8Test, LargestProductsDoNotSaturate) {
  for (const Signs signs : kAllSigns) {
    for (const uint8_t of_a : {uint8_t{255}, uint8_t{128}, uint8_t{127}, uint8_t{0}}) {
      for (const uint8_t of_b : {uint8_t{128}, uint8_t{127}, uint8_t{255}, uint8_t{0}}) {
        for (const Many zeros : {Many::kNone, Many::kEach}) {
          Product p({9, 517, 50}, signs, 3, zeros, zeros);
          std::fill(p.a.begin(), p.a.end(), of_a);
          std::fill(p.b.begin(), p.b.end(), of_b);
          p.Run(kernels(), p.Integers());
          p.Check(p.Integers());
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(GemmU8S8Test, SumsWrapAroundLikeInt32) {
  Product p({3, 40000, 17}, {false, false}, 3);
  std::fill(p.a.begin(), p.a.end(), uint8_t{255});
  std::fill(p.b.begin(), p.b.end(), uint8_t{255});
  p.Run(kernels(), p.Integers());
  p.Check(p.Integers());
}

TEST_P(GemmU8S8Test, DeepProductIsSummedInStretches) {
  for (const Case& c : {Case{11, 2048, 50}, Case{24, 4999, 50}, Case{100, 5003, 50},
                        Case{150, 3001, 100}, Case{1, 9000, 60}}) {
    SCOPED_TRACE(testing::Message() << "m " << c.m << " k " << c.k);
    Product p(c, {false, true}, 3, Many::kEach, Many::kEach);
    p.Run(kernels(), p.Integers());
    p.Check(p.Integers());
  }
}

TEST_P(GemmU8S8Test, ScalesBiasActivationAndResidualFollowTheSums) {
  uint32_t seed = 1;
  for (const Many scales_of_a : {Many::kOne, Many::kEach}) {
    for (const Many scales_of_b : {Many::kOne, Many::kEach}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kTanh}) {
        for (const int64_t n : {5, 30, 48, 90, 96}) {
          ++seed;
          SCOPED_TRACE(seed);
          Product p({21, 70, n}, kAllSigns[seed % 4], seed, Many::kEach, Many::kOne);
          U8S8Args args = p.Floats(scales_of_a, scales_of_b, activation);
          if (seed % 3 == 0) args.bias = nullptr;
          if (seed % 5 == 0) args.residual = nullptr;
          p.Run(kernels(), args);
          p.Check(args);
        }
      }
    }
  }
}

TEST_P(GemmU8S8Test, ResidualMayBeTheResultItself) {
  Product p({10, 2100, 96}, {false, true}, 9, Many::kOne);
  p.Run(kernels(), p.Floats(Many::kOne, Many::kEach));
  Product q({10, 2100, 96}, {false, true}, 9, Many::kOne);
  std::vector<float> in_place = q.residual;
  U8S8Args args = q.Floats(Many::kOne, Many::kEach);
  args.c = in_place.data();
  args.ldc = q.ldr;
  args.residual = in_place.data();
  q.Run(kernels(), args);
  for (int64_t i = 0; i < 10; ++i) {
    for (int64_t j = 0; j < 96; ++j) {
      uint32_t bits;
      std::memcpy(&bits, &in_place[i * q.ldr + j], sizeof(bits));
      ASSERT_EQ(bits, p.result()[i * p.ldc + j]);
    }
  }
}

TEST_P(GemmU8S8Test, PartsOfAnyPartitionGiveTheSameBits) {
  for (const Case& c : {Case{37, 70, 200}, Case{1, 64, 500}, Case{300, 16, 10}, Case{9, 0, 20}}) {
    Product whole(c, {false, true}, 5, Many::kEach, Many::kEach);
    whole.Run(kernels(), whole.Floats(Many::kEach, Many::kEach, Activation::kGelu));
    for (int parts : {2, 3, 7, 16}) {
      Product divided(c, {false, true}, 5, Many::kEach, Many::kEach);
      const U8S8Args args = divided.Floats(Many::kEach, Many::kEach, Activation::kGelu);
      divided.Run(kernels(), args, parts);
      ASSERT_EQ(divided.result(), whole.result()) << parts << " parts";
      if (!takes_unpacked()) continue;
      Product unpacked(c, {false, true}, 5, Many::kEach, Many::kEach);
      unpacked.RunUnpacked(kernels(), unpacked.Floats(Many::kEach, Many::kEach, Activation::kGelu),
                           parts);
      ASSERT_EQ(unpacked.result(), whole.result()) << parts << " parts";
    }
  }
}

// Batch-mates, and the form that timing prefers, change no bit.
TEST_P(GemmU8S8Test, RowsHaveTheBitsOfVectorsHoweverManyThereAre) {
  const Isa vectors = UsableIsa(Isa::kAvx512Vnni);
  if (kernels().panel_columns != U8S8KernelsFor(vectors).panel_columns) {
    GTEST_SKIP() << "packs in another way";
  }
  for (const Case& c : {Case{37, 130, 100}, Case{16, 64, 48}, Case{130, 200, 31}}) {
    for (const Signs signs : kAllSigns) {
      Product whole(c, signs, 5, Many::kEach, Many::kEach);
      whole.Run(U8S8KernelsFor(vectors), whole.Floats(Many::kEach, Many::kEach));
      Product p(c, signs, 5, Many::kEach, Many::kEach);
      const U8S8Args args = p.Floats(Many::kEach, Many::kEach);
      AlignedBuffer packed(static_cast<size_t>(kernels().PackedBytes(c.k, c.n)));
      kernels().pack(p.Source(), signs.a, c.k, c.n, packed.data());
      for (const int64_t rows : {c.m, int64_t{1}, int64_t{17}}) {
        for (int64_t row = 0; row < c.m; row += rows) {
          U8S8Args some = args;
          some.packed_b = packed.data();
          kernels().part(some, {row, std::min(row + rows, c.m), 0, kernels().Panels(c.n)});
        }
        ASSERT_EQ(p.result(), whole.result()) << rows << " rows at a time";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, GemmU8S8Test, testing::ValuesIn(ByteForms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace reprise::cpu
