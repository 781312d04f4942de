#include "runtime/device/cpu/attention.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
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
    AlignedBuffer scratch(sizeof(float) * kernels.ScratchFloats(keys, head_dim, v_head_dim));
    args.scratch = reinterpret_cast<float*>(scratch.data());
    kernels.rows(args, begin, end);
  }

  // The plain loop, in double.
  void Check() const {
    for (int64_t i = 0; i < queries; ++i) {
      std::vector<double> p(keys);
      double max = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t j = 0; j < args.keys; ++j) {
        for (int64_t c = 0; c < head_dim; ++c) p[j] += q[i * stride + c] * k[j * stride + c];
        p[j] *= args.scale;
        if (args.bias != nullptr) p[j] += args.bias[i * args.bias_stride + j];
        if (args.keep != nullptr && args.keep[i * args.keep_stride + j] == 0) {
          p[j] = -std::numeric_limits<double>::infinity();
        }
        max = std::max(max, p[j]);
      }
      for (int64_t j = 0; j < args.keys; ++j) sum += p[j] = std::exp(p[j] - max);
      for (int64_t c = 0; c < stride; ++c) {
        if (c >= v_head_dim) {
          ASSERT_EQ(out[i * stride + c], kCanary) << "query " << i << " column " << c;
          continue;
        }
        double expected = 0;
        for (int64_t j = 0; j < args.keys; ++j) expected += p[j] / sum * v[j * stride + c];
        ASSERT_NEAR(out[i * stride + c], expected, 1e-5) << "query " << i << " column " << c;
      }
    }
  }

  static constexpr float kCanary = 777.0f;
  int64_t queries, keys, head_dim, v_head_dim, stride;
  std::vector<float> q, k, v, bias, out;
  std::vector<uint8_t> keep;
  AttentionArgs args;
};

class AttentionTest : public testing::TestWithParam<Isa> {
 protected:
  const AttentionKernels& kernels() const { return AttentionKernelsFor(GetParam()); }
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
          head.Check();
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(AttentionTest, ManyKeysUseNarrowerBlocks) {
  Head head(60, 3000, 32, 32, Mask::kBiasPerQuery, 1);
  head.Run(kernels(), 0, 60);
  head.Check();
}

TEST_P(AttentionTest, BlocksOfQueriesGiveTheSameAnswer) {
  Head head(77, 40, 32, 32, Mask::kBiasRow, 1);
  head.Run(kernels(), 0, 31);
  head.Run(kernels(), 31, 32);
  head.Run(kernels(), 32, 77);
  head.Check();
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
  head.Check();
}

TEST_P(AttentionTest, HugeNegativeBiasOnEveryKeyIsNotNan) {
  // What exporters write for masked keys: adding it to a score swallows the score.
  Head head(5, 6, 32, 32, Mask::kBiasRow, 1);
  for (float& x : head.bias) x = -std::numeric_limits<float>::max();
  head.Run(kernels(), 0, 5);
  for (int64_t c = 0; c < 32; ++c) {
    double mean = 0;
    for (int64_t j = 0; j < 6; ++j) mean += head.v[j * head.stride + c] / 6;
    EXPECT_NEAR(head.out[c], mean, 1e-6);
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

TEST_P(AttentionTest, NoKeysGiveZeros) {
  Head head(3, 1, 8, 8, Mask::kNone, 1);
  head.args.keys = 0;
  head.Run(kernels(), 0, 3);
  for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(head.out[c], 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Tiers, AttentionTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
