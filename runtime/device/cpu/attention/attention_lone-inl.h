// Attention of one query or a few: a step of a decoder. Reading keys and values once takes most of
// the time. Vectors lie along the head; in a block they lie along its queries, and most lanes would
// be empty here. This is included inside a kernel file after attention_block-inl.h, once for each
// Highway target.
#if defined(REPRISE_CPU_ATTENTION_LONE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_ATTENTION_LONE_INL_H_
#undef REPRISE_CPU_ATTENTION_LONE_INL_H_
#else
#define REPRISE_CPU_ATTENTION_LONE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/attention/attention_block-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Up to this many queries are cheaper one by one than as a block.
constexpr int64_t kMostLoneQueries = kLanes / 4;

// Floats of scratch: a query, its scores and its mask.
inline int64_t LoneScratchFloats(int64_t keys, int64_t head_dim) {
  return head_dim + 2 * keys + 4 * kLanes;
}

// Returns the scores of keys [first, first + kLanes) without a mask; lanes after the last key
// repeat its score.
HWY_INLINE VF LoneScores(const AttentionArgs& args, const float* HWY_RESTRICT query,
                         int64_t first) {
  const F32 d;
  constexpr int kTogether = std::min(4, static_cast<int>(kLanes));
  HWY_ALIGN float sums[kLanes * kLanes], columns[kLanes * kLanes];
  const int64_t whole = args.head_dim / kLanes * kLanes, tail = args.head_dim - whole;
  for (int group = 0; group < kLanes; group += kTogether) {
    const float* rows[kTogether];
    VF sum[kTogether];
    HWY_UNROLL(4) for (int i = 0; i < kTogether; ++i) {
      rows[i] = args.k + std::min(first + group + i, args.keys - 1) * args.k_stride;
      sum[i] = hn::Zero(d);
    }
    for (int64_t c = 0; c < whole; c += kLanes) {
      const VF q = hn::Load(d, query + c);
      HWY_UNROLL(4) for (int i = 0; i < kTogether; ++i) {
        sum[i] = hn::MulAdd(q, hn::LoadU(d, rows[i] + c), sum[i]);
      }
    }
    if (tail > 0) {
      const VF q = hn::Load(d, query + whole);
      HWY_UNROLL(4) for (int i = 0; i < kTogether; ++i) {
        sum[i] = hn::MulAdd(q, LoadPart(d, rows[i] + whole, tail), sum[i]);
      }
    }
    HWY_UNROLL(4) for (int i = 0; i < kTogether; ++i) {
      hn::Store(sum[i], d, sums + (group + i) * kLanes);
    }
  }
  const float* rows[kLanes];
  for (int i = 0; i < kLanes; ++i) rows[i] = sums + i * kLanes;
  TransposeRows(d, rows, kLanes, hn::Set(d, 1.0f), columns, kLanes);
  VF scores = hn::Load(d, columns);
  for (int i = 1; i < kLanes; ++i) scores = hn::Add(scores, hn::Load(d, columns + i * kLanes));
  return scores;
}

// kVecs vectors of the output from `column` on, the last of `tail` columns: the sum of values by
// their weights, in kSets sums that do not wait for each other.
template <int kVecs, int kSets>
HWY_INLINE void LoneOutput(const AttentionArgs& args, const float* HWY_RESTRICT weights, VF inverse,
                           int64_t column, int64_t tail, float* out) {
  const F32 d;
  VF sums[kSets][kVecs];
  HWY_UNROLL(8) for (int s = 0; s < kSets; ++s) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) sums[s][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT values = args.v + column;
  const auto load = [&](const float* from, int v) HWY_ATTR {
    return v + 1 < kVecs || tail == kLanes ? hn::LoadU(d, from + v * kLanes)
                                           : LoadPart(d, from + v * kLanes, tail);
  };
  int64_t j = 0;
  for (; j + kSets <= args.keys; j += kSets) {
    HWY_UNROLL(8) for (int s = 0; s < kSets; ++s) {
      const VF weight = hn::Set(d, weights[j + s]);
      const float* from = values + (j + s) * args.v_stride;
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        sums[s][v] = hn::MulAdd(weight, load(from, v), sums[s][v]);
      }
    }
  }
  for (; j < args.keys; ++j) {
    const VF weight = hn::Set(d, weights[j]);
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      sums[0][v] = hn::MulAdd(weight, load(values + j * args.v_stride, v), sums[0][v]);
    }
  }
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    VF sum = sums[0][v];
    HWY_UNROLL(8) for (int s = 1; s < kSets; ++s) sum = hn::Add(sum, sums[s][v]);
    sum = hn::Mul(sum, inverse);
    float* to = out + column + v * kLanes;
    if (v + 1 < kVecs || tail == kLanes) {
      hn::StoreU(sum, d, to);
    } else {
      StorePart(sum, d, to, tail);
    }
  }
}

// Query `row` against all keys. `scratch`: LoneScratchFloats, aligned.
HWY_NOINLINE void LoneQuery(const AttentionArgs& args, int64_t row, float* HWY_RESTRICT scratch) {
  const F32 d;
  const int64_t padded_size = (args.head_dim + kLanes - 1) / kLanes * kLanes;
  const int64_t padded_keys = (args.keys + kLanes - 1) / kLanes * kLanes;
  float* HWY_RESTRICT query = scratch;
  float* HWY_RESTRICT scores = query + padded_size;
  const VF scale = hn::Set(d, args.scale);
  const float* from = args.q + row * args.q_stride;
  for (int64_t c = 0; c < args.head_dim; c += kLanes) {
    const int64_t left = args.head_dim - c;
    const VF q = left >= kLanes ? hn::LoadU(d, from + c) : LoadPart(d, from + c, left);
    hn::Store(hn::Mul(q, scale), d, query + c);
  }
  const BlockMask mask = MakeMask(args, row, /*live=*/1, /*stride=*/1, scores + padded_keys);
  const VF hidden = hn::Set(d, kMinusInfinity);
  VF max = hidden;
  for (int64_t j = 0; j < args.keys; j += kLanes) {
    const int64_t left = args.keys - j;
    VF score = LoneScores(args, query, j);
    if (mask.values != nullptr) {
      const float* values = mask.values + j;
      score = MaskedScore(score, left >= kLanes ? hn::LoadU(d, values) : LoadPart(d, values, left));
    }
    if (left < kLanes) {
      score = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(left)), score, hidden);
    }
    max = hn::Max(max, score);
    hn::Store(score, d, scores + j);
  }
  const VF reference = ReferenceOf(args, hn::MaxOfLanes(d, max));
  VF sum = hn::Zero(d);
  for (int64_t j = 0; j < args.keys; j += kLanes) {
    const VF p = SoftmaxExp(d, hn::Sub(hn::Load(d, scores + j), reference), kLowestExponent);
    hn::Store(p, d, scores + j);
    sum = hn::Add(sum, p);
  }
  const VF inverse = InverseOf(hn::SumOfLanes(d, sum));
  float* out = args.out + row * args.out_stride;
  int64_t column = 0;
  for (; args.v_head_dim - column >= 4 * kLanes; column += 4 * kLanes) {
    LoneOutput<4, 2>(args, scores, inverse, column, kLanes, out);
  }
  for (; column < args.v_head_dim; column += kLanes) {
    LoneOutput<1, 8>(args, scores, inverse, column,
                     std::min<int64_t>(kLanes, args.v_head_dim - column), out);
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
