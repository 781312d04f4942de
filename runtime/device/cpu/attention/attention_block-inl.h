// The parts that all attention kernels on vectors share: the masks of a block of queries, and how
// its scores and its output are stored. This is included inside a kernel file after math-inl.h,
// once for each Highway target.
#if defined(REPRISE_CPU_ATTENTION_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_ATTENTION_BLOCK_INL_H_
#undef REPRISE_CPU_ATTENTION_BLOCK_INL_H_
#else
#define REPRISE_CPU_ATTENTION_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int kLanes = HWY_LANES(float);
// A block's scores should stay in the L2 cache: with many keys a block holds fewer queries.
constexpr int64_t kMaxBlockScores = 64 * 1024;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// A weight below e^-60 of the largest one changes no sum. It is 0: a smaller one times a value is
// a subnormal number, for which Intel's cores stop and think.
constexpr float kLowestExponent = -60.0f;

// A mask at or below kHidden hides its key from a query that sees other keys, whose masks are kSeen
// or more: the weight is 0 to the bit for all scores below 1e29. An infinity or NaN in a hidden
// value, or in a key that a finite mask hides, reaches only the queries whose blocks have it.
constexpr float kHidden = -1e30f, kSeen = -1e20f;

// The values that are added to the scores of a block.
struct BlockMask {
  const float* values = nullptr;  // [keys] or [keys][stride], or null
  bool is_row = false;            // the former
};

// Keys [begin, end): those that some query of a block sees, and all keys between them.
struct KeyRange {
  int64_t begin, end;
};

// Computes the values to add to the scores of keys [first, first + count). `bias` and `keep` are
// the rows of their query, or null.
HWY_INLINE void MaskOfKeys(const AttentionArgs& args, const float* bias, const uint8_t* keep,
                           int64_t first, int64_t count, float* HWY_RESTRICT to) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const hn::Rebind<uint8_t, F32> d8;
  const VF lowest = hn::Set(d, args.lowest_bias), hidden = hn::Set(d, kMinusInfinity);
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    VF value = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias + first + j);
    if (args.key_bias != nullptr) value = hn::Add(value, hn::LoadU(d, args.key_bias + first + j));
    value = hn::IfThenElse(hn::Lt(value, lowest), lowest, value);
    if (keep != nullptr) {
      const auto kept = hn::PromoteTo(du, hn::LoadU(d8, keep + first + j));
      value = hn::IfThenElse(hn::RebindMask(d, hn::Ne(kept, hn::Zero(du))), value, hidden);
    }
    hn::StoreU(value, d, to + j);
  }
  for (; j < count; ++j) {
    const int64_t key = first + j;
    const float value = (bias == nullptr ? 0.0f : bias[key]) +
                        (args.key_bias == nullptr ? 0.0f : args.key_bias[key]);
    to[j] = keep != nullptr && keep[key] == 0 ? kMinusInfinity
            : value < args.lowest_bias        ? args.lowest_bias
                                              : value;
  }
}

// Bias and keep-mask of queries [first, first + live) together as one thing to add. One row when
// all queries share them, or there is but one. `to`: [keys][stride]; columns after the last query
// repeat it.
HWY_MAYBE_UNUSED HWY_NOINLINE BlockMask MakeMask(const AttentionArgs& args, int64_t first,
                                                 int64_t live, int64_t stride,
                                                 float* HWY_RESTRICT to) {
  if (args.bias == nullptr && args.keep == nullptr && args.key_bias == nullptr) return {};
  const auto bias_of = [&](int64_t query) {
    return args.bias == nullptr ? nullptr : args.bias + query * args.bias_stride;
  };
  const auto keep_of = [&](int64_t query) {
    return args.keep == nullptr ? nullptr : args.keep + query * args.keep_stride;
  };
  const bool shared = (args.bias == nullptr || args.bias_stride == 0) &&
                      (args.keep == nullptr || args.keep_stride == 0);
  if (shared && args.keep == nullptr && (args.bias == nullptr || args.key_bias == nullptr)) {
    return {.values = args.bias == nullptr ? args.key_bias : args.bias, .is_row = true};
  }
  if (shared || stride == 1) {
    MaskOfKeys(args, bias_of(first), keep_of(first), 0, args.keys, to);
    return {.values = to, .is_row = true};
  }
  const F32 d;
  const VF one = hn::Set(d, 1.0f);
  const bool as_it_is =
      args.keep == nullptr && args.key_bias == nullptr && args.lowest_bias == kMinusInfinity;
  constexpr int64_t kKeys = 64;
  HWY_ALIGN float some[kLanes * kKeys];
  for (int64_t group = 0; group < stride; group += kLanes) {
    const float* rows[kLanes];
    const auto query_of = [&](int64_t i) { return first + std::min(group + i, live - 1); };
    if (as_it_is) {
      for (int64_t i = 0; i < kLanes; ++i) rows[i] = bias_of(query_of(i));
      TransposeRows(d, rows, args.keys, one, to + group, stride);
      continue;
    }
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = some + i * kKeys;
    for (int64_t key = 0; key < args.keys; key += kKeys) {
      const int64_t count = std::min(kKeys, args.keys - key);
      for (int64_t i = 0; i < kLanes; ++i) {
        MaskOfKeys(args, bias_of(query_of(i)), keep_of(query_of(i)), key, count, some + i * kKeys);
      }
      TransposeRows(d, rows, count, one, to + key * stride + group, stride);
    }
  }
  return {.values = to, .is_row = false};
}

// Returns the keys that `mask`, which covers `vectors` vectors of queries, leaves visible. All
// keys are seen where the mask hides all from some query: its weights then follow from its scores.
HWY_MAYBE_UNUSED HWY_NOINLINE KeyRange SeenKeys(const BlockMask& mask, int64_t keys,
                                                int64_t vectors) {
  const KeyRange all = {0, keys};
  if (mask.values == nullptr) return all;
  const F32 d;
  const VF hidden = hn::Set(d, kHidden);
  KeyRange range = {keys, 0};
  const auto add = [&](int64_t begin, int64_t end) {
    range.begin = std::min(range.begin, begin);
    range.end = std::max(range.end, end);
  };
  if (mask.is_row) {
    // To whole vectors.
    VF highest = hn::Set(d, kMinusInfinity);
    for (int64_t j = 0; j < keys; j += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, keys - j);
      const VF values = count == kLanes ? hn::LoadU(d, mask.values + j)
                                        : hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)),
                                                         LoadPart(d, mask.values + j, count),
                                                         hn::Set(d, kMinusInfinity));
      highest = hn::Max(highest, values);
      if (!hn::AllTrue(d, hn::Le(values, hidden))) add(j, j + count);
    }
    return hn::GetLane(hn::MaxOfLanes(d, highest)) >= kSeen ? range : all;
  }
  for (int64_t v = 0; v < vectors; ++v) {
    VF highest = hn::Set(d, kMinusInfinity);
    const float* HWY_RESTRICT values = mask.values + v * kLanes;
    for (int64_t j = 0; j < keys; ++j, values += vectors * kLanes) {
      const VF value = hn::Load(d, values);
      highest = hn::Max(highest, value);
      if (!hn::AllTrue(d, hn::Le(value, hidden))) add(j, j + 1);
    }
    if (!hn::AllTrue(d, hn::Ge(highest, hn::Set(d, kSeen)))) return all;
  }
  return range;
}

// Prefetches the memory after rows [first, first + rows) of Q, K and V: where a row holds all
// heads side by side, that is the next head. Rows of a fused product are too far apart for the
// hardware prefetchers. Prefetching an address that does not exist does no harm.
HWY_INLINE void AskForNextHead(const AttentionArgs& args, int64_t first, int64_t rows) {
  constexpr int64_t kLine = 64 / sizeof(float);
  for (int64_t row = first; row < first + rows; ++row) {
    const float* q = args.q + row * args.q_stride + args.head_dim;
    const float* k = args.k + row * args.k_stride + args.head_dim;
    const float* v = args.v + row * args.v_stride + args.v_head_dim;
    for (int64_t i = 0; i < args.head_dim; i += kLine) {
      __builtin_prefetch(q + i, /*rw=*/0, /*locality=*/2);
      __builtin_prefetch(k + i, /*rw=*/0, /*locality=*/2);
    }
    for (int64_t i = 0; i < args.v_head_dim; i += kLine) {
      __builtin_prefetch(v + i, /*rw=*/0, /*locality=*/2);
    }
  }
}

// Returns score + mask; minus infinity in the mask takes the place of any score, also of NaN.
HWY_INLINE VF MaskedScore(VF score, VF mask) {
  const F32 d;
  const VF hidden = hn::Set(d, kMinusInfinity);
  return hn::IfThenElse(hn::Eq(mask, hidden), hidden, hn::Add(score, mask));
}

// Sums of kKeys keys from `first` on become scores [key][kVecs vectors of queries]: masked, stored,
// and in the running maximum of each query.
template <int kVecs, int kKeys>
HWY_INLINE void FinishScores(const BlockMask& mask, int64_t first, VF (&sums)[kKeys][kVecs],
                             float* HWY_RESTRICT scores, float* HWY_RESTRICT max) {
  const F32 d;
  constexpr int64_t kStride = int64_t{kVecs} * kLanes;
  if (mask.values != nullptr && mask.is_row) {
    const float* HWY_RESTRICT values = mask.values + first;
    HWY_UNROLL(8) for (int r = 0; r < kKeys; ++r) {
      const VF m = hn::Set(d, values[r]);
      HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) sums[r][v] = MaskedScore(sums[r][v], m);
    }
  } else if (mask.values != nullptr) {
    const float* HWY_RESTRICT values = mask.values + first * kStride;
    HWY_UNROLL(8) for (int r = 0; r < kKeys; ++r) {
      HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
        sums[r][v] = MaskedScore(sums[r][v],
                                 hn::Load(d, values + int64_t{r} * kStride + int64_t{v} * kLanes));
      }
    }
  }
  scores += first * kStride;
  HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
    VF highest = hn::Load(d, max + v * kLanes);
    HWY_UNROLL(8) for (int r = 0; r < kKeys; ++r) {
      highest = hn::Max(highest, sums[r][v]);
      hn::Store(sums[r][v], d, scores + r * kStride + v * kLanes);
    }
    hn::Store(highest, d, max + v * kLanes);
  }
}

// Returns the reference of the exponentials of a query's scores: their maximum.
HWY_INLINE VF ReferenceOf(const AttentionArgs& args, VF max) {
  const F32 d;
  if (!args.zero_when_masked) return max;
  // Any finite number will do: the exponentials of -inf are then 0 and not NaN.
  return hn::IfThenElse(hn::Eq(max, hn::Set(d, kMinusInfinity)), hn::Zero(d), max);
}

// Returns one over the sums of exponentials. A sum is 0 only where nothing is left to attend to.
HWY_INLINE VF InverseOf(VF sum) {
  const F32 d;
  return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), sum));
}

// Writes `live` rows of a tile of output, times inverse[row]; `tail` columns of its last vector.
template <int kRows, int kVecs>
HWY_INLINE void WriteOutput(VF (&sums)[kRows][kVecs], const float* inverse, int64_t live,
                            int64_t tail, float* out, int64_t out_stride) {
  const F32 d;
  HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
    if (r >= live) break;
    const VF scale = hn::Set(d, inverse[r]);
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      float* to = out + r * out_stride + v * kLanes;
      const VF x = hn::Mul(sums[r][v], scale);
      if (v + 1 < kVecs || tail == kLanes) {
        hn::StoreU(x, d, to);
      } else {
        StorePart(x, d, to, tail);
      }
    }
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
