#include "runtime/device/cpu/attention/attention.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/graph/tensor.h"
#include "tests/runtime/device/cpu/emulated/kernels.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

enum class Mask { kNone, kBiasRow, kBiasPerQuery, kKeepRow, kKeepPerQuery, kBoth };

// One head inside wider rows, as it lies in a fused Q-K-V product.
struct Head {
  Head(int64_t queries, int64_t keys, int64_t head_dim, int64_t v_head_dim, Mask mask,
       uint32_t seed)
      : queries(queries), keys(keys), head_dim(head_dim), v_head_dim(v_head_dim) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill = [&](std::vector<float>& v, int64_t count, float factor) {
      v.resize(static_cast<size_t>(count));
      for (float& x : v) x = factor * uniform(random);
    };
    stride = head_dim + v_head_dim + 5;
    fill(q, queries * stride, 3);
    fill(k, keys * stride, 3);
    fill(v, keys * stride, 1);
    fill(bias, queries * keys, 2);
    keep.resize(bias.size());
    for (uint8_t& x : keep) x = uniform(random) < 0.4f;
    for (int64_t i = 0; i < queries; ++i) keep[i * keys + i % keys] = 1;
    out.assign(static_cast<size_t>(queries * stride), kCanary);
    args = {.q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .out = out.data(),
            .q_stride = stride,
            .k_stride = stride,
            .v_stride = stride,
            .out_stride = stride,
            .keys = keys,
            .head_dim = head_dim,
            .v_head_dim = v_head_dim,
            .scale = 0.3f};
    if (mask == Mask::kBiasRow || mask == Mask::kBiasPerQuery || mask == Mask::kBoth) {
      args.bias = bias.data();
      args.bias_stride = mask == Mask::kBiasRow ? 0 : keys;
    }
    if (mask == Mask::kKeepRow || mask == Mask::kKeepPerQuery || mask == Mask::kBoth) {
      args.keep = keep.data();
      args.keep_stride = mask == Mask::kKeepPerQuery ? keys : 0;
    }
  }

  void Run(const AttentionKernels& kernels, int64_t begin, int64_t end) {
    AlignedBuffer scratch(sizeof(float) * kernels.scratch_floats(keys, head_dim, v_head_dim));
    args.scratch = reinterpret_cast<float*>(scratch.data());
    kernels.rows(args, begin, end);
  }

  // Returns a number as the kernel multiplies it.
  float Operand(float x) const { return rounded ? BFloat16ToFloat(FloatToBFloat16(x)) : x; }

  // Computes the plain loop, in double: [v_head_dim] of query `i`.
  std::vector<double> Expected(int64_t i) const {
    std::vector<double> p(keys), expected(v_head_dim);
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < args.keys; ++j) {
      for (int64_t c = 0; c < head_dim; ++c) {
        p[j] += rounded ? static_cast<double>(Operand(q[i * stride + c] * args.scale)) *
                              Operand(k[j * stride + c])
                        : static_cast<double>(q[i * stride + c]) * k[j * stride + c];
      }
      if (!rounded) p[j] *= args.scale;
      if (args.bias != nullptr) p[j] += args.bias[i * args.bias_stride + j];
      if (args.keep != nullptr && args.keep[i * args.keep_stride + j] == 0) {
        p[j] = -std::numeric_limits<double>::infinity();
      }
      max = std::max(max, p[j]);
    }
    for (int64_t j = 0; j < args.keys; ++j) sum += p[j] = std::exp(p[j] - max);
    for (int64_t j = 0; j < args.keys; ++j) {
      for (int64_t c = 0; c < v_head_dim; ++c)
        expected[c] += p[j] / sum * Operand(v[j * stride + c]);
    }
    return expected;
  }
  void Check() const {
    for (int64_t i = 0; i < queries; ++i) {
      const std::vector<double> expected = Expected(i);
      for (int64_t c = 0; c < stride; ++c) {
        if (c >= v_head_dim) {
          ASSERT_EQ(out[i * stride + c], kCanary) << "query " << i << " column " << c;
          continue;
        }
        ASSERT_NEAR(out[i * stride + c], expected[c], tolerance)
            << "query " << i << " column " << c;
      }
    }
  }
  double MeanError() const {
    double sum = 0;
    for (int64_t i = 0; i < queries; ++i) {
      const std::vector<double> expected = Expected(i);
      for (int64_t c = 0; c < v_head_dim; ++c) sum += std::abs(out[i * stride + c] - expected[c]);
    }
    return sum / static_cast<double>(queries * v_head_dim);
  }

  double tolerance = 1e-5;
  bool rounded = false;
  static constexpr float kCanary = 777.0f;
  int64_t queries, keys, head_dim, v_head_dim, stride;
  std::vector<float> q, k, v, bias, out;
  std::vector<uint8_t> keep;
  AttentionArgs args;
};

struct NamedKernels {
  std::string name;
  const AttentionKernels* kernels;
  bool rounding = false;
};

// Returns all that this machine has.
std::vector<NamedKernels> AllKernels() {
  std::vector<NamedKernels> all;
  for (const Isa isa : TestedTiers()) {
    all.push_back({std::string(IsaName(isa)), &AttentionKernelsFor(isa)});
  }
  if (const AttentionKernels* tiles = TileAttentionKernelsFor(DetectIsa())) {
    all.push_back({"amx", tiles});
  }
  for (const Isa isa : {Isa::kAvx512Bf16, Isa::kAmx}) {
    const AttentionKernels* rounding =
        DetectIsa().Covers(isa) ? RoundingAttentionKernelsFor(isa) : nullptr;
    if (rounding != nullptr) {
      all.push_back({absl::StrCat("bf16_", IsaName(isa)), rounding, /*rounding=*/true});
    }
  }
  if (EmulatedIsa() == Isa::kAmx) {
    all.push_back({"emulated_amx", EmulatedAttentionKernelsFor(Isa::kAmx)});
    all.push_back({"emulated_bf16_amx", EmulatedRoundingAttentionKernelsFor(Isa::kAmx),
                   /*rounding=*/true});
  }
  return all;
}

class AttentionTest : public testing::TestWithParam<NamedKernels> {
 protected:
  const AttentionKernels& kernels() const { return *GetParam().kernels; }

  // Compares with the plain loop. Where weights are rounded, values of up to 1 are off by 2^-9, and
  // by another half of that where the sum is not of the rounded ones.
  void Check(Head& head) const {
    head.rounded = GetParam().rounding;
    if (head.rounded) head.tolerance = 4e-3;
    head.Check();
  }
};

TEST_P(AttentionTest, EqualsPlainLoopForAnyShapeAndMask) {
  uint32_t seed = 0;
  for (int64_t queries : {1, 2, 5, 13, 16, 17, 33, 48, 50, 97}) {
    for (int64_t keys : {1, 2, 7, 8, 31, 65}) {
      for (int64_t head_dim : {1, 13, 16, 32, 40, 64}) {
        for (Mask mask : {Mask::kNone, Mask::kBiasRow, Mask::kBiasPerQuery, Mask::kKeepRow,
                          Mask::kKeepPerQuery, Mask::kBoth}) {
          ++seed;
          SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, head dim "
                                          << head_dim << ", mask " << static_cast<int>(mask));
          Head head(queries, keys, head_dim, seed % 3 == 0 ? 21 : head_dim, mask, seed);
          head.Run(kernels(), 0, queries);
          Check(head);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(AttentionTest, ManyKeysUseNarrowerBlocks) {
  Head head(60, 3000, 32, 32, Mask::kBiasPerQuery, 1);
  head.Run(kernels(), 0, 60);
  Check(head);
}

TEST_P(AttentionTest, BlocksOfQueriesGiveTheSameAnswer) {
  Head head(77, 40, 32, 32, Mask::kBiasRow, 1);
  head.Run(kernels(), 0, 31);
  head.Run(kernels(), 31, 32);
  head.Run(kernels(), 32, 77);
  Check(head);
}

TEST_P(AttentionTest, KeysBehindTheLiveOnesAreNotRead) {
  Head head(9, 20, 32, 32, Mask::kBiasRow, 1);
  head.args.keys = 11;
  for (int64_t j = 11; j < 20; ++j) {
    for (int64_t c = 0; c < head.stride; ++c) {
      head.k[j * head.stride + c] = head.v[j * head.stride + c] = NAN;
    }
    head.bias[j] = NAN;
  }
  head.Run(kernels(), 0, 9);
  Check(head);
}

TEST_P(AttentionTest, HugeNegativeBiasOnEveryKeyIsNotNan) {
  // Exporters write this number for masked keys: adding it to a score swallows the score.
  Head head(5, 6, 32, 32, Mask::kBiasRow, 1);
  for (float& x : head.bias) x = -std::numeric_limits<float>::max();
  head.Run(kernels(), 0, 5);
  for (int64_t c = 0; c < 32; ++c) {
    double mean = 0;
    for (int64_t j = 0; j < 6; ++j) mean += head.v[j * head.stride + c] / 6;
    EXPECT_NEAR(head.out[c], mean, GetParam().rounding ? 4e-3 : 1e-6);
  }
}

TEST_P(AttentionTest, FullyMaskedQueryGivesNanOrZeroAsAsked) {
  for (bool zero : {false, true}) {
    Head head(20, 6, 32, 32, Mask::kKeepPerQuery, 1);
    for (int64_t j = 0; j < 6; ++j) head.keep[3 * 6 + j] = 0;
    head.args.zero_when_masked = zero;
    head.Run(kernels(), 0, 20);
    for (int64_t c = 0; c < 32; ++c) {
      if (zero) {
        EXPECT_EQ(head.out[3 * head.stride + c], 0.0f);
      } else {
        EXPECT_TRUE(std::isnan(head.out[3 * head.stride + c]));
      }
      EXPECT_FALSE(std::isnan(head.out[4 * head.stride + c]));
    }
  }
}

TEST_P(AttentionTest, ScoresThatGrowWithTheKeysKeepTheirWeights) {
  for (float step : {0.05f, 1.0f, 30.0f}) {
    Head head(37, 203, 32, 32, Mask::kBiasRow, 1);
    for (int64_t j = 0; j < 203; ++j) head.bias[j] = step * static_cast<float>(j);
    head.Run(kernels(), 0, 37);
    Check(head);
  }
}

TEST_P(AttentionTest, MaskedKeysInFrontOfOthersWeighNothing) {
  const float lowest = std::numeric_limits<float>::lowest();
  for (float masked : {-1e4f, -1e9f, lowest, -std::numeric_limits<float>::infinity()}) {
    Head head(35, 150, 32, 32, Mask::kBiasRow, 1);
    for (int64_t j = 0; j < 150; ++j) head.bias[j] = j < 70 ? masked : -60.0f;
    head.Run(kernels(), 0, 35);
    Check(head);
  }
}

TEST_P(AttentionTest, DivisionOfQueriesChangesNoBit) {
  Head whole(77, 140, 40, 24, Mask::kBoth, 1), parts = whole;
  parts.args.q = parts.q.data();
  parts.args.k = parts.k.data();
  parts.args.v = parts.v.data();
  parts.args.out = parts.out.data();
  parts.args.bias = parts.bias.data();
  parts.args.keep = parts.keep.data();
  whole.Run(kernels(), 0, 77);
  for (int64_t begin : {0, 31, 32, 60}) {
    const int64_t end = begin == 0 ? 31 : begin == 31 ? 32 : begin == 32 ? 60 : 77;
    parts.Run(kernels(), begin, end);
  }
  EXPECT_EQ(whole.out, parts.out);
}

// As a bucket may hold few queries, or many with padding after the few.
TEST_P(AttentionTest, FewQueriesHaveTheBitsOfManyWhereAsked) {
  for (const int64_t queries : {1, 2, 3, 4, 7}) {
    Head few(queries, queries, 32, 32, Mask::kNone, 7);
    Head many(40, 40, 32, 32, Mask::kKeepRow, 7);
    for (Head* head : {&few, &many}) head->args.one_order = true;
    const auto copy = [&](const std::vector<float>& from, std::vector<float>& to) {
      std::copy_n(from.begin(), queries * few.stride, to.begin());
    };
    copy(few.q, many.q);
    copy(few.k, many.k);
    copy(few.v, many.v);
    for (int64_t i = 0; i < 40; ++i) many.keep[static_cast<size_t>(i)] = i < queries;
    few.Run(kernels(), 0, queries);
    many.Run(kernels(), 0, 40);
    for (int64_t i = 0; i < queries * few.stride; ++i) {
      ASSERT_EQ(few.out[static_cast<size_t>(i)], many.out[static_cast<size_t>(i)]) << queries;
    }
  }
}

TEST_P(AttentionTest, MaskedKeysBehindTheOthersChangeNoBit) {
  for (int64_t keys : {20, 33, 64, 100}) {
    Head few(40, 140, 32, 32, Mask::kKeepRow, 1);
    for (int64_t j = 0; j < 140; ++j) few.keep[j] = j < keys;
    few.Run(kernels(), 0, 40);
    const std::vector<float> expected = few.out;
    few.args.keys = keys;
    few.Run(kernels(), 0, 40);
    EXPECT_EQ(few.out, expected) << keys << " keys";
  }
}

// Keys that none of a block's queries sees, before and after, are not computed: a causal mask and a
// window. Their masks may be the lowest number or -inf; a mask that is only low is computed.
TEST_P(AttentionTest, KeysThatAMaskHidesFromAllQueriesWeighNothing) {
  for (int64_t window : {1, 7, 40, 500}) {
    for (float hidden : {-HUGE_VALF, std::numeric_limits<float>::lowest(), -1e4f}) {
      for (int64_t queries : {5, 48, 130}) {
        Head head(queries, queries, 32, 32, Mask::kBiasPerQuery, 31);
        for (int64_t i = 0; i < queries; ++i) {
          for (int64_t j = 0; j < queries; ++j) {
            if (j > i || j <= i - window) head.bias[i * queries + j] = hidden;
          }
        }
        head.Run(kernels(), 0, queries);
        Check(head);
      }
    }
  }
}

// Keys past the end of a row hold whatever its padding became.
TEST_P(AttentionTest, InfiniteScoresOfHiddenKeysChangeNoBit) {
  const auto is_hidden = [](int64_t key) { return key % 7 == 3 || key >= 130; };
  for (const Mask mask :
       {Mask::kBiasRow, Mask::kBiasPerQuery, Mask::kKeepRow, Mask::kKeepPerQuery, Mask::kBoth}) {
    for (const int64_t queries : {1, 3, 50}) {
      Head head(queries, 150, 32, 32, mask, 41);
      for (int64_t at = 0; at < queries * 150; ++at) {
        const bool hidden = is_hidden(at % 150);
        if (head.args.keep != nullptr) head.keep[at] = !hidden;
        if (head.args.bias != nullptr && hidden) head.bias[at] = -HUGE_VALF;
      }
      head.Run(kernels(), 0, queries);
      const std::vector<float> expected = head.out;
      for (const float infinite : {HUGE_VALF, -HUGE_VALF, NAN}) {
        for (int64_t j = 0; j < 150; ++j) {
          if (is_hidden(j)) head.k[j * head.stride + j % 32] = infinite;
        }
        head.Run(kernels(), 0, queries);
        EXPECT_EQ(head.out, expected) << queries << " queries, " << infinite;
      }
    }
  }
}

// A query that sees no key by a finite mask attends to all of them, next to others that do not.
TEST_P(AttentionTest, QueryWithoutAVisibleKeyAttendsToAll) {
  Head head(50, 60, 16, 16, Mask::kBiasPerQuery, 37);
  for (int64_t i = 0; i < 50; ++i) {
    for (int64_t j = i == 20 ? 0 : 10; j < 60; ++j) head.bias[i * 60 + j] = -1e30f;
  }
  for (int64_t j = 0; j < 60; ++j) head.bias[20 * 60 + j] = std::numeric_limits<float>::lowest();
  head.Run(kernels(), 0, 50);
  Check(head);
}

TEST_P(AttentionTest, InfiniteValueReachesEveryQuery) {
  Head head(33, 100, 32, 32, Mask::kNone, 1);
  head.v[50 * head.stride + 3] = std::numeric_limits<float>::infinity();
  head.Run(kernels(), 0, 33);
  for (int64_t i = 0; i < 33; ++i) {
    EXPECT_EQ(head.out[i * head.stride + 3], std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isfinite(head.out[i * head.stride + 4]));
  }
}

TEST_P(AttentionTest, NanScoreMakesItsQueryNan) {
  Head head(33, 100, 32, 32, Mask::kNone, 1);
  head.q[7 * head.stride + 3] = NAN;
  head.Run(kernels(), 0, 33);
  for (int64_t i = 0; i < 33; ++i) EXPECT_EQ(std::isnan(head.out[i * head.stride]), i == 7);
}

TEST_P(AttentionTest, NoKeysGiveZeros) {
  Head head(3, 1, 8, 8, Mask::kNone, 1);
  head.args.keys = 0;
  head.Run(kernels(), 0, 3);
  for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(head.out[c], 0.0f);
}

TEST(TileAttentionTest, IsAtLeastAsExactAsVectors) {
  const AttentionKernels* tiles = TileAttentionKernelsFor(DetectIsa());
  if (tiles == nullptr) tiles = EmulatedAttentionKernelsFor(EmulatedIsa());
  if (tiles == nullptr) GTEST_SKIP() << "no AVX-512 with products of bytes";
  for (int64_t keys : {96, 200, 512}) {
    for (int64_t head_dim : {32, 64}) {
      Head head(64, keys, head_dim, head_dim, Mask::kBiasPerQuery, 3);
      head.Run(AttentionKernelsFor(Isa::kAvx512), 0, 64);
      const double vectors = head.MeanError();
      head.Run(*tiles, 0, 64);
      EXPECT_LE(head.MeanError(), vectors) << keys << " keys, head dim " << head_dim;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionTest, testing::ValuesIn(AllKernels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace reprise::cpu
