// Products by weights of a few bits on products of bytes: as exact as sums of floats, and the same
// bits for a row whatever the other rows are.
#include "runtime/device/cpu/gemm/gemm_block_digits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/ops/products/round_rows.h"
#include "tests/runtime/device/cpu/emulated/kernels.h"
#include "tests/runtime/device/cpu/gemm/block_weights.h"
#include "tests/runtime/device/cpu/gemm/gemm_harness.h"

namespace reprise::cpu {
namespace {

// How rows are multiplied.
struct DigitForm {
  std::string name;
  const BlockDigitKernels* kernels;
  const BlockDigitKernels* packing;
  const BlockDigitKernels* vectors;  // the same on vectors
  bool rounded;                      // rows are bytes
};
void PrintTo(const DigitForm& form, std::ostream* out) { *out << form.name; }

// Returns the forms of all tiers that multiply bytes: by vectors, and by the tile unit or its
// emulation.
std::vector<DigitForm> DigitForms() {
  std::vector<DigitForm> forms;
  for (const bool rounded : {false, true}) {
    const std::string suffix = rounded ? "_rounded" : "";
    const auto add = [&](const std::string& name, Isa vectors, const BlockDigitKernels* kernels) {
      if (kernels == nullptr) return;
      forms.push_back({name + suffix, kernels, BlockDigitKernelsFor(vectors),
                       BlockDigitKernelsFor(vectors, rounded), rounded});
    };
    for (Isa isa : ProductTiers()) {
      if (isa == Isa::kAmx) {
        add("amx", isa, TileBlockDigitKernelsFor(isa, rounded));
      } else {
        add(std::string(IsaName(isa)), isa, BlockDigitKernelsFor(isa, rounded));
      }
    }
    add("emulated_amx", Isa::kAvx512Vnni, EmulatedBlockDigitKernelsFor(EmulatedIsa(), rounded));
  }
  return forms;
}

// The same weights, packed.
struct Packed {
  Packed(const BlockDigitKernels& kernels, const Stored& stored, uint32_t seed,
         GuardedProduct& product) {
    const Blocks blocks(stored, seed, product);
    form = blocks.form;
    packed = AlignedBuffer(static_cast<size_t>(kernels.packed_bytes(product.k, product.n, form)));
    kernels.pack(blocks.source, form, product.k, product.n, packed.data());
  }

  BlockForm form;
  AlignedBuffer packed;
};

class GemmBlockDigitsTest : public testing::TestWithParam<DigitForm> {
 protected:
  const BlockDigitKernels& kernels() const { return *GetParam().kernels; }
  const BlockDigitKernels& packing() const { return *GetParam().packing; }

  // Rows [begin, end) of the product, divided into `parts`.
  void Run(GemmArgs args, const Packed& b, int64_t begin, int64_t end, int parts) const {
    RunBy(kernels(), args, b, begin, end, parts);
  }
  static void RunBy(const BlockDigitKernels& kernels, GemmArgs args, const Packed& b, int64_t begin,
                    int64_t end, int parts) {
    args.packed_b = b.packed.data();
    args.a += begin * args.lda;
    args.c += begin * args.ldc;
    if (args.residual != nullptr) args.residual += begin * args.ld_residual;
    const AlignedBuffer scratch(
        static_cast<size_t>(kernels.scratch_bytes(end - begin, args.k, b.form)));
    args.scratch = scratch.data();
    for (int part = 0; part < parts; ++part) {
      kernels.part(args, b.form,
                   kernels.division.Partition(end - begin, args.n, false, parts, part));
    }
  }

  // Expects each sum to be as near to the exact one as sums of floats are; of rounded rows where
  // these are rounded.
  void ExpectExact(const GuardedProduct& p, const BlockForm& form, int64_t row) const {
    const auto first = p.a.begin() + row * p.lda;
    std::vector<float> a(first, first + p.k);
    if (GetParam().rounded) {
      ops::RoundRows(&*first, 1, p.k, DigitBlocks::LengthFor(form), a.data());
    }
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < p.k; ++i) {
        const double term = static_cast<double>(a[static_cast<size_t>(i)]) * p.b[j * p.ldb + i];
        sum += term;
        squares += term * term;
      }
      const double bound = std::ldexp(1.0, -21) * std::sqrt(squares * static_cast<double>(p.k));
      // Numbers near the least normal one have fewer digits.
      ASSERT_NEAR(p.result()[static_cast<size_t>(row * p.ldc + j)], sum, bound + 3e-36)
          << "row " << row << " column " << j;
    }
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GemmBlockDigitsTest);

TEST_P(GemmBlockDigitsTest, RowsAreExactAndHaveTheSameBitsHoweverManyThereAre) {
  constexpr Stored kStored[] = {
      {4, 4, 0, 32, false},   {4, 4, 0, 16, true}, {4, 4, 0, 1024, true}, {8, 8, 0, 32, true},
      {8, 8, 128, 16, false}, {8, 4, 8, 8, false}, {2, 4, 0, 16, true},   {8, 8, 128, 256, true},
      {4, 4, 0, 72, false},   {4, 4, 0, 64, true}, {8, 8, 0, 96, true},
  };
  // The emulation is a hundred times slower.
  const bool emulated = GetParam().name.starts_with("emulated");
  const int64_t most = emulated ? 300'000 : 2'000'000;
  uint32_t seed = 1;
  for (const Stored& stored : kStored) {
    for (int64_t m : {1, 2, 3, 4, 7, 9, 17, 430}) {
      for (int64_t n : {1, 31, 49, 97}) {
        for (int64_t k : {1, 13, 64, 257, 2100}) {
          if (m * n * k > most) continue;
          SCOPED_TRACE(testing::Message()
                       << stored.bits << " bits kept as " << stored.kept << ", blocks of "
                       << stored.block << ", m " << m << " n " << n << " k " << k);
          GuardedProduct p({m, k, n}, ++seed, /*transposed=*/true);
          const Packed b(packing(), stored, seed, p);
          GemmArgs args = p.Args(Activation::kNone);
          args.bias = nullptr;
          args.residual = nullptr;
          Run(args, b, 0, m, 1);
          for (int64_t row = 0; row < m; row += 1 + m / 5) {
            ExpectExact(p, b.form, row);
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
          RunBy(*GetParam().vectors, args, b, 0, m, 1);
          ASSERT_EQ(p.result(), whole) << "vectors";
        }
      }
    }
  }
}

// Where large elements meet weights of 0 only the small ones are seen: they keep their digits.
TEST_P(GemmBlockDigitsTest, SmallElementsBesideLargeOnesKeepTheirDigits) {
  for (const float value : {100.0f, 3e3f, 1e4f, 1.7e9f, -1e30f}) {
    for (const int large : {1, 2, 5, 40}) {
      SCOPED_TRACE(testing::Message() << large << " of " << value);
      GuardedProduct p({5, 640, 40}, 5, /*transposed=*/true);
      for (int64_t row = 0; row < p.m; row += 2) {
        for (int i = 0; i < large; ++i) p.a[row * p.lda + (7 + 15 * i) % p.k] = value;
      }
      const Packed b(packing(), {4, 4, 0, 32, true}, 5, p);
      GemmArgs args = p.Args(Activation::kNone);
      args.bias = nullptr;
      args.residual = nullptr;
      for (int64_t row = 0; row < p.m; ++row) Run(args, b, row, row + 1, 1);
      const std::vector<float> lone = p.result();
      Run(args, b, 0, p.m, 1);
      EXPECT_EQ(p.result(), lone);
      int unseen = 0;
      for (int64_t row = 0; row < p.m; ++row) ExpectExact(p, b.form, row);
      for (int64_t j = 0; j < p.n; ++j) unseen += p.b[j * p.ldb + 7] == 0;
      EXPECT_GT(unseen, 0);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(GemmBlockDigitsTest, RowsOfAnyMagnitudeHaveTheirDigits) {
  GuardedProduct p({8, 96, 40}, 5, /*transposed=*/true);
  const float scales[] = {1e-44f, 1e-36f, 1e-30f, 1.0f, 1e20f, 1e34f, 0.0f, 1e36f};
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t i = 0; i < p.k; ++i) p.a[row * p.lda + i] *= scales[row];
  }
  // A block of a row that is mostly zeros, as after a ReLU.
  for (int64_t i = 32; i < 64; ++i) p.a[3 * p.lda + i] = i == 40 ? 3.0f : i == 41 ? 0.01f : 0.0f;
  const Packed b(packing(), {8, 8, 0, 32, true}, 5, p);
  GemmArgs args = p.Args(Activation::kNone);
  args.bias = nullptr;
  args.residual = nullptr;
  Run(args, b, 0, p.m, 1);
  for (int64_t row = 0; row < p.m; ++row) ExpectExact(p, b.form, row);
}

TEST_P(GemmBlockDigitsTest, InfinityAndNoNumberStayInTheirRows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  GuardedProduct p({6, 70, 40}, 5, /*transposed=*/true);
  p.a[1 * p.lda + 7] = kInfinity;
  p.a[3 * p.lda + 69] = std::numeric_limits<float>::quiet_NaN();
  const Packed b(packing(), {4, 4, 0, 32, true}, 5, p);
  GemmArgs args = p.Args(Activation::kNone);
  args.bias = nullptr;
  args.residual = nullptr;
  for (const bool together : {false, true}) {
    for (int64_t row = 0; row < p.m; ++row) {
      if (!together) Run(args, b, row, row + 1, 1);
    }
    if (together) Run(args, b, 0, p.m, 1);
    for (int64_t row = 0; row < p.m; ++row) {
      if (row != 1 && row != 3) ExpectExact(p, b.form, row);
    }
    for (int64_t j = 0; j < p.n; ++j) {
      const float weight = p.b[j * p.ldb + 7], got = p.result()[p.ldc + j];
      // A rounded block has no number left.
      if (weight == 0 || GetParam().rounded) {
        EXPECT_TRUE(std::isnan(got));
      } else {
        EXPECT_EQ(got, std::copysign(kInfinity, weight));
      }
      EXPECT_TRUE(std::isnan(p.result()[3 * p.ldc + j]));
    }
  }
}

// Long blocks are cut into equal ones.
TEST(DigitBlocksTest, BlocksAreCutWhereTheyAreLong) {
  const auto length = [](int64_t block) { return DigitBlocks::LengthFor({.block = block}); };
  EXPECT_EQ(length(8), 8);
  EXPECT_EQ(length(32), 32);
  EXPECT_EQ(length(128), 128);
  EXPECT_EQ(length(256), 128);
  EXPECT_EQ(length(576), 96);
  EXPECT_EQ(length(20), 0);
  EXPECT_EQ(length(4), 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, GemmBlockDigitsTest, testing::ValuesIn(DigitForms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace reprise::cpu
