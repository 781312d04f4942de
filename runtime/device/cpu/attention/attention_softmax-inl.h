// The scores of attention on their way to be weights, a few rows at a time. Included inside
// attention_amx.cc; AVX-512 only.
//
// A query's exponentials are taken from a reference, the maximum of its first 32 scores. A later
// score that is far above the reference raises it, and the sums so far are scaled down; so only a
// few patches have to stay in the L1 cache, however many keys there are.
#if defined(REPRISE_CPU_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_ATTENTION_SOFTMAX_INL_H_
#undef REPRISE_CPU_ATTENTION_SOFTMAX_INL_H_
#else
#define REPRISE_CPU_ATTENTION_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/attention/attention_operands-inl.h"
#include "runtime/device/cpu/gemm/bf16-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// As in attention.cc.
constexpr float kLowestExponent = -60.0f;
// A score this far above the reference raises it: the larger a difference, the fewer digits it has
// after the point.
constexpr float kHighestExponent = 4.0f;

// The state of the softmax of a block of queries.
struct alignas(64) Rows {
  float sums[kQueries][kLanes];  // the sums of the exponentials, by lane
  float reference[kQueries];     // subtracted from their scores
};

// A patch of scores on its way to be weights.
struct alignas(64) Patch {
  float scores[kPatch];                      // [query][key]
  std::byte weights[kOperandBytes<kParts>];  // [part][query]
  float factors[kQueries];                   // where references were raised: of older sums
  bool raised;
};

// The values added to the scores, and the keys that are kept.
struct Masks {
  const float* row = nullptr;     // shared by all queries; or null
  const float* bias = nullptr;    // one row per query, in addition; or null
  const uint8_t* keep = nullptr;  // one row per query, or null

  Masks(const AttentionArgs& args, float* memory) {
    const float* shared_bias = args.bias_stride == 0 ? args.bias : nullptr;
    const uint8_t* shared_keep = args.keep_stride == 0 ? args.keep : nullptr;
    if (args.bias_stride != 0) bias = args.bias;
    if (args.keep_stride != 0) keep = args.keep;
    if (shared_bias == nullptr && shared_keep == nullptr && args.key_bias == nullptr) return;
    row = memory;
    for (int64_t j = 0; j < args.keys; ++j) {
      float value = (shared_bias == nullptr ? 0.0f : shared_bias[j]) +
                    (args.key_bias == nullptr ? 0.0f : args.key_bias[j]);
      if (bias == nullptr && value < args.lowest_bias) value = args.lowest_bias;
      memory[j] = shared_keep == nullptr || shared_keep[j] != 0 ? value : kMinusInfinity;
    }
  }
  bool by_query() const { return bias != nullptr || keep != nullptr; }
};

// x[i] becomes e^x[i] for x[i] in [kLowestExponent, kHighestExponent], 0 below. The relative error
// is 2e-7. Each operation is written for all vectors before the next one: a core that waits for the
// unit has no room left to look for other work.
template <int kCount>
HWY_INLINE void PatchExp(VF (&x)[kCount]) {
  const F32 d;
  // Adding it leaves whole numbers.
  const VF whole = hn::Set(d, 12582912.0f);
  const VF log2e = hn::Set(d, 1.44269504f);
  constexpr float kPolynomial[] = {1.000000119e+00f, 6.931469440e-01f, 2.402211726e-01f,
                                   5.550714582e-02f, 9.675655514e-03f, 1.327635720e-03f};
  constexpr int kDegree = 5;
  VF n[kCount], p[kCount];
  __mmask16 kept[kCount];
  HWY_UNROLL(8) for (int i = 0; i < kCount; ++i) n[i] = hn::MulAdd(x[i], log2e, whole);
  HWY_UNROLL(8) for (int i = 0; i < kCount; ++i) {
    kept[i] = _mm512_cmp_ps_mask(x[i].raw, _mm512_set1_ps(kLowestExponent), _CMP_NLT_UQ);
  }
  HWY_UNROLL(8) for (int i = 0; i < kCount; ++i) n[i] = hn::Sub(n[i], whole);
  HWY_UNROLL(8) for (int i = 0; i < kCount; ++i) x[i] = hn::MulSub(x[i], log2e, n[i]);
  HWY_UNROLL(8) for (int i = 0; i < kCount; ++i) p[i] = hn::Set(d, kPolynomial[kDegree]);
  HWY_UNROLL(5) for (int c = kDegree - 1; c >= 0; --c) {
    const VF add = hn::Set(d, kPolynomial[c]);
    HWY_UNROLL(8) for (int i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], add);
  }
  HWY_UNROLL(8) for (int i = 0; i < kCount; ++i) {
    x[i].raw = _mm512_maskz_scalef_ps(kept[i], p[i].raw, n[i].raw);
  }
}

// Returns the upper halves of two vectors of floats.
HWY_INLINE VBits UpperHalves(VF low, VF high) {
  // Shuffles and shifts go to different ports of a core: here products use the ports of the shifts.
  const __m512i places = _mm512_set4_epi32(0x0F0E0F0E, 0x0B0A0B0A, 0x07060706, 0x03020302);
  return VBits{_mm512_mask_shuffle_epi8(_mm512_castps_si512(high.raw), 0x3333333333333333,
                                        _mm512_castps_si512(low.raw), places)};
}

// A patch's scores become weights, a few rows at a time.
template <int kPieces>
class Softmax {
 public:
  Softmax() = default;
  // Rows [0, rows) of `patch`: queries from `first` on, keys from `key` on. To be done in `steps`.
  Softmax(const AttentionArgs& args, const Masks& masks, Patch& patch, Rows& state, int64_t first,
          int64_t rows, int64_t key, int64_t steps)
      : args_(&args),
        masks_(&masks),
        patch_(&patch),
        state_(&state),
        first_(first),
        rows_(rows),
        key_(key),
        share_(CeilDiv(rows << kShareBits, steps)) {
    patch.raised = false;
    group_ = key == 0 ? GroupOf<true>() : GroupOf<false>();
  }

  void Step() {
    due_ += share_;
    if (due_ >= 0 && row_ < rows_) {
      due_ -= kGroup << kShareBits;
      (this->*group_)();
    }
  }
  void Finish() {
    while (row_ < rows_) (this->*group_)();
  }

 private:
  enum class Kind { kPlain, kRow, kAny };
  static constexpr int64_t kGroup = 2;  // rows
  static constexpr int kShareBits = 8;
  using GroupFunction = void (Softmax::*)();

  template <bool kFirst>
  GroupFunction GroupOf() const {
    if (masks_->by_query() || args_->keys < key_ + kKeys)
      return &Softmax::Group<Kind::kAny, kFirst>;
    return masks_->row != nullptr ? &Softmax::Group<Kind::kRow, kFirst>
                                  : &Softmax::Group<Kind::kPlain, kFirst>;
  }

  // Returns half `half` of a row `x` with any kind of mask applied.
  HWY_INLINE VF Masked(VF x, int64_t r, int half) const {
    const F32 d;
    const int64_t at = key_ + half * kLanes;
    const int64_t left = std::clamp<int64_t>(args_->keys - at, 0, kLanes);
    auto there = hn::FirstN(d, static_cast<size_t>(left));
    VF value = masks_->row == nullptr ? hn::Zero(d) : LoadFirst(d, masks_->row + at, left);
    if (masks_->bias != nullptr) {
      const float* bias = masks_->bias + (first_ + r) * args_->bias_stride + at;
      value = hn::Add(LoadFirst(d, bias, left), value);
      const VF lowest = hn::Set(d, args_->lowest_bias);
      value = hn::IfThenElse(hn::Lt(value, lowest), lowest, value);
    }
    if (masks_->keep != nullptr) {
      const uint8_t* keep = masks_->keep + (first_ + r) * args_->keep_stride + at;
      const __m128i bytes = _mm_maskz_loadu_epi8(there.raw, keep);
      there.raw = static_cast<__mmask16>(there.raw & _mm_test_epi8_mask(bytes, bytes));
    }
    const VF hidden = hn::Set(d, kMinusInfinity);
    there = hn::And(there, hn::Ne(value, hidden));
    return hn::IfThenElse(there, hn::Add(x, value), hidden);
  }

  // Makes the largest score of row `r` the reference where one is too far above it.
  HWY_NOINLINE void Raise(int64_t r, const VF* scores, VF* x) {
    const F32 d;
    const VF max = hn::MaxOfLanes(d, hn::Max(scores[0], scores[1]));
    float& reference = state_->reference[r];
    if (!(hn::GetLane(max) - reference > kHighestExponent)) return;
    if (!patch_->raised) std::fill_n(patch_->factors, kQueries, 1.0f);
    patch_->raised = true;
    VF factor[1] = {hn::Sub(hn::Set(d, reference), max)};
    PatchExp(factor);
    patch_->factors[r] = hn::GetLane(factor[0]);
    reference = hn::GetLane(max);
    hn::Store(hn::Mul(hn::Load(d, state_->sums[r]), factor[0]), d, state_->sums[r]);
    for (int half = 0; half < 2; ++half) x[half] = hn::Sub(scores[half], max);
  }

  // Computes the next kGroup rows; rows after the last one are computed like others and never read.
  template <Kind kind, bool kFirst>
  HWY_NOINLINE void Group() {
    const F32 d;
    const Bits du;
    constexpr int kVectors = 2 * kGroup;
    const float* HWY_RESTRICT from = patch_->scores + row_ * kKeys;
    float* HWY_RESTRICT sums = state_->sums[row_];
    float* reference = state_->reference + row_;
    VF score[kVectors], x[kVectors];
    HWY_UNROLL(8) for (int i = 0; i < kVectors; ++i) {
      score[i] = hn::Load(d, from + i * kLanes);
      if constexpr (kind == Kind::kRow) {
        const VF hidden = hn::Set(d, kMinusInfinity);
        const VF value = hn::Load(d, masks_->row + key_ + i % 2 * kLanes);
        score[i] = hn::IfThenElse(hn::Eq(value, hidden), hidden, hn::Add(score[i], value));
      } else if constexpr (kind == Kind::kAny) {
        score[i] = Masked(score[i], std::min(row_ + i / 2, rows_ - 1), i % 2);
      }
    }
    if constexpr (kFirst) {
      HWY_UNROLL(4) for (int r = 0; r < kGroup; ++r) {
        // A finite number where there is no score: those that come will raise it.
        const VF max = hn::MaxOfLanes(d, hn::Max(score[2 * r], score[2 * r + 1]));
        reference[r] = std::max(hn::GetLane(max), std::numeric_limits<float>::lowest());
      }
    }
    HWY_UNROLL(8) for (int i = 0; i < kVectors; ++i) {
      x[i] = hn::Sub(score[i], hn::Set(d, reference[i / 2]));
    }
    if constexpr (!kFirst) {
      __mmask16 below = 0xFFFF;
      HWY_UNROLL(8) for (int i = 0; i < kVectors; ++i) {
        below =
            _mm512_mask_cmp_ps_mask(below, x[i].raw, _mm512_set1_ps(kHighestExponent), _CMP_NGT_UQ);
      }
      if (HWY_UNLIKELY(below != 0xFFFF)) {
        for (int r = 0; r < kGroup; ++r) Raise(row_ + r, score + 2 * r, x + 2 * r);
      }
    }
    PatchExp(x);
    HWY_UNROLL(4) for (int r = 0; r < kGroup; ++r) {
      const VF sum = hn::Add(x[2 * r], x[2 * r + 1]);
      float* HWY_RESTRICT to = sums + r * kLanes;
      hn::Store(kFirst ? sum : hn::Add(hn::Load(d, to), sum), d, to);
    }
    if constexpr (kPieces == 1) {
      auto* HWY_RESTRICT rounded = reinterpret_cast<float*>(patch_->weights) + row_ * kLanes;
      HWY_UNROLL(4) for (int r = 0; r < kGroup; ++r) {
        hn::Store(RoundPair(x[2 * r], x[2 * r + 1]), d, rounded + r * kLanes);
      }
      row_ += kGroup;
      return;
    }
    // The values are finite or NaN, so that each part may be cut off the rest as it is.
    auto* HWY_RESTRICT to = reinterpret_cast<uint32_t*>(patch_->weights) + row_ * kLanes;
    HWY_UNROLL(3) for (int part = 0; part < kParts; ++part) {
      HWY_UNROLL(4) for (int r = 0; r < kGroup; ++r) {
        hn::Store(UpperHalves(x[2 * r], x[2 * r + 1]), du, to + r * kLanes);
      }
      to += 2 * kTileBytes / kFloatBytes;
      if (part + 1 == kParts) break;
      VF top[kVectors];
      HWY_UNROLL(8) for (int i = 0; i < kVectors; ++i) {
        top[i] = hn::BitCast(d, hn::And(hn::BitCast(du, x[i]), hn::Set(du, 0xFFFF0000u)));
      }
      HWY_UNROLL(8) for (int i = 0; i < kVectors; ++i) x[i] = hn::Sub(x[i], top[i]);
    }
    row_ += kGroup;
  }

  const AttentionArgs* args_ = nullptr;
  const Masks* masks_ = nullptr;
  Patch* patch_ = nullptr;
  Rows* state_ = nullptr;
  int64_t first_ = 0;
  int64_t rows_ = 0;
  int64_t key_ = 0;
  int64_t share_ = 0;  // rows of a step, times 2^kShareBits
  GroupFunction group_ = nullptr;
  int64_t due_ = 0;  // rows that are still to be done, times 2^kShareBits
  int64_t row_ = 0;
};

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // include guard
