// Attention by the tile unit (AMX) of a CPU, exact to float32.
//
// Both products of a head are of floats in three parts (tile_unit-inl.h). A patch of scores, 32
// queries by 32 keys, is [query][key], so that its exponentials, a vector of keys each, are the
// next product's rows as they lie, and masks are added as they lie.
//
// A query's exponentials are taken from a reference, the maximum of its first 32 scores. Where a
// later score is far above it the reference is raised, and what was summed so far is made smaller;
// so nothing but a few patches has to wait in the first-level cache, however many keys there are.
//
// The exponentials cost the vectors about as much as the products cost the unit. So three patches
// are under way at a time: while the unit makes the scores of one and multiplies the values by
// another, the vectors make the exponentials of the one between, a row after every few instructions
// of the unit.
//
// Every row of a tile is its own, keys are summed in blocks that are counted from the first key,
// and keys behind the last one add zeros: neither other rows nor a division of the work change a
// bit.
#include <algorithm>
#include <limits>

#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/attention_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/math-inl.h"
#include "runtime/device/cpu/tile_unit-inl.h"
#include "runtime/device/cpu/transpose-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Queries of a block: two tiles of rows, which share what is loaded of keys and values. Keys of a
// block: the depth of the second product.
constexpr int64_t kQueries = 2 * kRowsOfTile;
constexpr int64_t kKeys = kDepth;
constexpr int64_t kPatch = kQueries * kKeys;
constexpr int64_t kFloatBytes = sizeof(float);
// One side of a product for one depth, [part][two tiles]: the second tile may be absent.
constexpr int64_t kOperandBytes = kParts * 2 * kTileBytes;
// The unit multiplies in six steps for each patch and depth.
constexpr int64_t kSteps = 6;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// As in attention.cc.
constexpr float kLowestExponent = -60.0f;
// A score that is so far above the reference raises it: a difference has no more digits behind the
// point the larger it is.
constexpr float kHighestExponent = 4.0f;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How many tiles there are of what.
struct Extent {
  explicit Extent(int64_t keys, int64_t head_dim, int64_t v_head_dim)
      : key_blocks(CeilDiv(keys, kKeys)),
        depth(CeilDiv(head_dim, kDepth)),
        columns(CeilDiv(v_head_dim, 2 * kRowsOfTile)) {}
  int64_t key_blocks;
  int64_t depth;    // of a score
  int64_t columns;  // pairs of tiles of V's columns
};

// What is known of a block of queries.
struct alignas(64) Rows {
  float sums[kQueries][kLanes];  // of the exponentials, by lane
  float reference[kQueries];     // what their scores are compared with
};

// A patch of scores on its way to be weights.
struct alignas(64) Patch {
  float scores[kPatch];              // [query][key]
  std::byte weights[kOperandBytes];  // [part][query]
  float factors[kQueries];           // where references were raised: of older sums
  bool raised;
};

// The scratch of a call.
struct Scratch {
  Scratch(const Extent& extent, void* memory) {
    auto* at = static_cast<std::byte*>(memory);
    const auto take = [&](int64_t bytes) {
      std::byte* begin = at;
      at += bytes;
      return begin;
    };
    k = take(extent.key_blocks * extent.depth * kOperandBytes);
    v = take(extent.key_blocks * extent.columns * kOperandBytes);
    q = take(extent.depth * kOperandBytes);
    for (Patch*& patch : patches) patch = reinterpret_cast<Patch*>(take(sizeof(Patch)));
    for (Rows*& of_block : rows) of_block = reinterpret_cast<Rows*>(take(sizeof(Rows)));
    output = reinterpret_cast<float*>(take(extent.columns * kPatch * kFloatBytes));
    columns = reinterpret_cast<float*>(take(extent.depth * kDepth * kRowsOfTile * kFloatBytes));
    mask = reinterpret_cast<float*>(take(extent.key_blocks * kKeys * kFloatBytes));
    end = at;
  }

  std::byte* k;  // [key block][depth] operands
  std::byte* v;  // [key block][columns] operands
  std::byte* q;  // [depth] operands
  // Each is filled while the one before it is read.
  Patch* patches[2];
  Rows* rows[3];
  float* output;   // [two tiles of columns][query][column]
  float* columns;  // the keys of a tile, transposed
  float* mask;     // [keys], what all queries add
  std::byte* end;
};

int64_t ScratchFloats(int64_t keys, int64_t head_dim, int64_t v_head_dim) {
  std::byte* const nowhere = nullptr;
  return (Scratch(Extent(keys, head_dim, v_head_dim), nowhere).end - nowhere) / kFloatBytes;
}

// What is added to scores, and which of them there are.
struct Masks {
  const float* row = nullptr;     // for every query; or null
  const float* bias = nullptr;    // of each query, beside it; or null
  const uint8_t* keep = nullptr;  // of each query, or null

  Masks(const AttentionArgs& args, float* memory) {
    const float* shared_bias = args.bias_stride == 0 ? args.bias : nullptr;
    const uint8_t* shared_keep = args.keep_stride == 0 ? args.keep : nullptr;
    if (args.bias_stride != 0) bias = args.bias;
    if (args.keep_stride != 0) keep = args.keep;
    if (shared_bias == nullptr && shared_keep == nullptr && args.key_bias == nullptr) return;
    row = memory;
    for (int64_t j = 0; j < args.keys; ++j) {
      const float value = (shared_bias == nullptr ? 0.0f : shared_bias[j]) +
                          (args.key_bias == nullptr ? 0.0f : args.key_bias[j]);
      memory[j] = shared_keep == nullptr || shared_keep[j] != 0 ? value : kMinusInfinity;
    }
  }
  bool by_query() const { return bias != nullptr || keep != nullptr; }
};

// x[i] becomes e^x[i] for x[i] in [kLowestExponent, kHighestExponent], 0 below. Relative error
// 2e-7. Each operation is written for all of them before the next one: a core that waits for the
// unit has no room left to look for what it could do meanwhile.
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

// The upper halves of two vectors of floats.
HWY_INLINE VBits UpperHalves(VF low, VF high) {
  // Shuffles and shifts go to different ports of a core: here products have those of the shifts.
  const __m512i places = _mm512_set4_epi32(0x0F0E0F0E, 0x0B0A0B0A, 0x07060706, 0x03020302);
  return VBits{_mm512_mask_shuffle_epi8(_mm512_castps_si512(high.raw), 0x3333333333333333,
                                        _mm512_castps_si512(low.raw), places)};
}

// A patch's scores become weights, a few rows at a time.
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

  // Half `half` of a row, masked as anything may be.
  HWY_INLINE VF Masked(VF x, int64_t r, int half) const {
    const F32 d;
    const int64_t at = key_ + half * kLanes;
    const int64_t left = std::clamp<int64_t>(args_->keys - at, 0, kLanes);
    auto there = hn::FirstN(d, static_cast<size_t>(left));
    VF value = masks_->row == nullptr ? hn::Zero(d) : LoadFirst(d, masks_->row + at, left);
    if (masks_->bias != nullptr) {
      const float* bias = masks_->bias + (first_ + r) * args_->bias_stride + at;
      value = hn::Add(LoadFirst(d, bias, left), value);
    }
    if (masks_->keep != nullptr) {
      const uint8_t* keep = masks_->keep + (first_ + r) * args_->keep_stride + at;
      const __m128i bytes = _mm_maskz_loadu_epi8(there.raw, keep);
      there.raw = static_cast<__mmask16>(there.raw & _mm_test_epi8_mask(bytes, bytes));
    }
    return hn::IfThenElse(there, hn::Add(x, value), hn::Set(d, kMinusInfinity));
  }

  // Where a score of row `r` is too far above the reference the largest one becomes that.
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

  // The next kGroup rows; those behind the last one are computed like others and never read.
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
        score[i] = hn::Add(score[i], hn::Load(d, masks_->row + key_ + i % 2 * kLanes));
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
    // They are finite or no number, so that each part may be cut off the rest as it is.
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
  int64_t due_ = 0;  // so many rows more than have been done, times 2^kShareBits
  int64_t row_ = 0;
};

template <int kTile>
HWY_INLINE void LoadTile(const void* from, int64_t stride = 64) {
  asm volatile("tileloadd (%[from],%[stride],1), %%tmm%c[tile]" ::[from] "r"(from),
               [stride] "r"(stride), [tile] "i"(kTile)
               : "memory");
}
template <int kTile>
HWY_INLINE void StoreTile(float* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c[tile], (%[to],%[stride],1)" ::[to] "r"(to), [stride] "r"(stride),
               [tile] "i"(kTile)
               : "memory");
}
template <int kSum, int kA, int kB>
HWY_INLINE void MultiplyTiles() {
  asm volatile(
      "tdpbf16ps %%tmm%c[b], %%tmm%c[a], %%tmm%c[sum]" ::[sum] "i"(kSum), [a] "i"(kA), [b] "i"(kB));
}

// Tiles 0 to 3 are sums, [row][column]; 4 and 5 a part of B, 6 and 7 a part of A.
template <int kRows, int kPart>
HWY_INLINE void LoadA(const std::byte* a) {
  LoadTile<6>(a + kPart * 2 * kTileBytes);
  if constexpr (kRows > 1) LoadTile<7>(a + (kPart * 2 + 1) * kTileBytes);
}
template <int kColumns, int kPart>
HWY_INLINE void LoadB(const std::byte* b) {
  LoadTile<4>(b + kPart * 2 * kTileBytes);
  if constexpr (kColumns > 1) LoadTile<5>(b + (kPart * 2 + 1) * kTileBytes);
}
template <int kRows, int kColumns>
HWY_INLINE void MultiplyAll() {
  MultiplyTiles<0, 6, 4>();
  if constexpr (kColumns > 1) MultiplyTiles<1, 6, 5>();
  if constexpr (kRows > 1) MultiplyTiles<2, 7, 4>();
  if constexpr (kRows > 1 && kColumns > 1) MultiplyTiles<3, 7, 5>();
}

// sums[kRows * 16][kKeys] = A B, or more by that; `depth` operands each. Of each the small products
// come first. `meanwhile` goes on after each step.
template <int kRows, int kColumns>
void Multiply(const std::byte* a, const std::byte* b, int64_t depth, bool add, float* sums,
              Softmax& meanwhile) {
  constexpr int64_t kStride = kKeys * kFloatBytes;
  float* const lower = sums + kRowsOfTile * kKeys;
  if (add) {
    LoadTile<0>(sums, kStride);
    if constexpr (kColumns > 1) LoadTile<1>(sums + kLanes, kStride);
    if constexpr (kRows > 1) LoadTile<2>(lower, kStride);
    if constexpr (kRows > 1 && kColumns > 1) LoadTile<3>(lower + kLanes, kStride);
  } else {
    asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::
                     : "memory");
  }
  for (int64_t i = 0; i < depth; ++i, a += kOperandBytes, b += kOperandBytes) {
    const auto step = [&]() HWY_ATTR {
      MultiplyAll<kRows, kColumns>();
      meanwhile.Step();
    };
    LoadB<kColumns, 0>(b);
    LoadA<kRows, 2>(a);
    step();
    LoadA<kRows, 1>(a);
    step();
    LoadB<kColumns, 1>(b);
    step();
    LoadA<kRows, 0>(a);
    step();
    LoadB<kColumns, 2>(b);
    step();
    LoadB<kColumns, 0>(b);
    step();
  }
  StoreTile<0>(sums, kStride);
  if constexpr (kColumns > 1) StoreTile<1>(sums + kLanes, kStride);
  if constexpr (kRows > 1) StoreTile<2>(lower, kStride);
  if constexpr (kRows > 1 && kColumns > 1) StoreTile<3>(lower + kLanes, kStride);
}

void MultiplyPatch(int64_t rows, int64_t columns, const std::byte* a, const std::byte* b,
                   int64_t depth, bool add, float* sums, Softmax& meanwhile) {
  const bool two_rows = rows > kRowsOfTile, two_columns = columns > kLanes;
  const auto multiply = two_rows      ? two_columns ? Multiply<2, 2> : Multiply<2, 1>
                             : two_columns ? Multiply<1, 2>
                                      : Multiply<1, 1>;
  multiply(a, b, depth, add, sums, meanwhile);
}

// Parts of a pair of vectors, those of one lane in one lane of `to`, a row of an operand.
HWY_INLINE void StoreParts(VF low, VF high, std::byte* to) {
  const Bits du;
  const Split low_parts = SplitFloat(low), high_parts = SplitFloat(high);
  HWY_UNROLL(3) for (int p = 0; p < kParts; ++p) {
    hn::Store(Pair(low_parts.parts[p], high_parts.parts[p]), du,
              reinterpret_cast<uint32_t*>(to + p * 2 * kTileBytes));
  }
}
constexpr int64_t kOperandRow = kLanes * kFloatBytes;

// Asks for `columns` of rows [first, first + count) of `all`. In a fused product rows are a few
// kilobytes apart, which the core foresees too late.
void Ask(const float* rows, int64_t stride, int64_t columns, int64_t first, int64_t count,
         int64_t all) {
  for (int64_t r = first; r < std::min(first + count, all); ++r) {
    for (int64_t c = 0; c < columns; c += kLanes) __builtin_prefetch(rows + r * stride + c, 0, 3);
  }
}
constexpr int64_t kRowsAhead = 32;

// Queries [first, first + rows), scaled, as rows.
void SplitQueries(const AttentionArgs& args, int64_t first, int64_t rows, int64_t query_end,
                  std::byte* to) {
  const F32 d;
  const VF scale = hn::Set(d, args.scale);
  Ask(args.q, args.q_stride, args.head_dim, first + rows, kQueries, query_end);
  for (int64_t r = 0; r < rows; ++r, to += kOperandRow) {
    const float* HWY_RESTRICT from = args.q + (first + r) * args.q_stride;
    std::byte* out = to;
    for (int64_t at = 0; at < args.head_dim; at += kDepth, out += kOperandBytes) {
      StoreParts(hn::Mul(LoadFirst(d, from + at, args.head_dim - at), scale),
                 hn::Mul(LoadFirst(d, from + at + kLanes, args.head_dim - at - kLanes), scale),
                 out);
    }
  }
}

// Keys as columns. Those behind the last one repeat it.
void SplitKeys(const AttentionArgs& args, const Extent& extent, float* columns, std::byte* to) {
  const F32 d;
  std::fill(columns + args.head_dim * kLanes, columns + extent.depth * kDepth * kLanes, 0.0f);
  for (int64_t first = 0; first < args.keys; first += kLanes) {
    const float* rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      rows[i] = args.k + std::min(first + i, args.keys - 1) * args.k_stride;
    }
    Ask(args.k, args.k_stride, args.head_dim, first + kRowsAhead, kLanes, args.keys);
    TransposeRows(d, rows, args.head_dim, hn::Set(d, 1.0f), columns, kLanes);
    const float* HWY_RESTRICT from = columns;
    std::byte* out =
        to + first / kKeys * extent.depth * kOperandBytes + first % kKeys / kLanes * kTileBytes;
    for (int64_t block = 0; block < extent.depth; ++block, from += kDepth * kLanes) {
      for (int64_t i = 0; i < kDepth / 2; ++i) {
        StoreParts(hn::Load(d, from + i * kLanes), hn::Load(d, from + (i + kDepth / 2) * kLanes),
                   out + i * kOperandRow);
      }
      out += kOperandBytes;
    }
  }
}

// Values as they lie, and zeros behind the last one.
void SplitValues(const AttentionArgs& args, const Extent& extent, std::byte* to) {
  const F32 d;
  const auto row = [&](int64_t j, int64_t column) HWY_ATTR {
    return j < args.keys
               ? LoadFirst(d, args.v + j * args.v_stride + column, args.v_head_dim - column)
               : hn::Zero(d);
  };
  for (int64_t first = 0; first < args.keys; first += kKeys, to += extent.columns * kOperandBytes) {
    Ask(args.v, args.v_stride, args.v_head_dim, first + kRowsAhead, kKeys, args.keys);
    for (int64_t column = 0; column < args.v_head_dim; column += kLanes) {
      std::byte* out =
          to + column / (2 * kLanes) * kOperandBytes + column % (2 * kLanes) / kLanes * kTileBytes;
      for (int64_t i = 0; i < kKeys / 2; ++i) {
        StoreParts(row(first + i, column), row(first + i + kKeys / 2, column),
                   out + i * kOperandRow);
      }
    }
  }
}

// The output of queries [first, first + rows), whose sums are all there.
void Write(const AttentionArgs& args, const Extent& extent, int64_t first, int64_t rows,
           const float* from, const Rows& state) {
  const F32 d;
  // A sum is 0 only where nothing is left to attend to.
  const float of_nothing = args.zero_when_masked ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  float inverse[kQueries];
  for (int64_t r = 0; r < rows; ++r) {
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, state.sums[r])));
    inverse[r] = sum == 0 ? of_nothing : 1.0f / sum;
  }
  for (int64_t column = 0; column < args.v_head_dim; column += 2 * kLanes, from += kPatch) {
    const int64_t columns = std::min(2 * kLanes, args.v_head_dim - column);
    float* out = args.out + first * args.out_stride + column;
    for (int64_t r = 0; r < rows; ++r, out += args.out_stride) {
      const VF scale = hn::Set(d, inverse[r]);
      for (int64_t c = 0; c < columns; c += kLanes) {
        const VF x = hn::Mul(hn::Load(d, from + r * kKeys + c), scale);
        if (columns - c >= kLanes) {
          hn::StoreU(x, d, out + c);
        } else {
          StorePart(x, d, out + c, columns - c);
        }
      }
    }
  }
}

// The sums so far times the factors of their rows.
HWY_NOINLINE void ScaleOutput(const Extent& extent, const float* factors, float* output) {
  const F32 d;
  for (int64_t row = 0; row < extent.columns * kQueries; ++row, output += kKeys) {
    const VF factor = hn::Set(d, factors[row % kQueries]);
    for (int64_t c = 0; c < kKeys; c += kLanes) {
      hn::Store(hn::Mul(hn::Load(d, output + c), factor), d, output + c);
    }
  }
}

// Where a patch lies.
struct Position {
  int64_t first = 0;  // query
  int64_t key_block = 0;
  int64_t block = 0;  // of queries
};

void TileRows(const AttentionArgs& args, int64_t query_begin, int64_t query_end) {
  if (query_begin >= query_end) return;
  if (args.keys == 0) {
    for (int64_t r = query_begin; r < query_end; ++r) {
      std::fill_n(args.out + r * args.out_stride, args.v_head_dim, 0.0f);
    }
    return;
  }
  const TileConfig config;
  asm volatile("ldtilecfg %0" ::"m"(config));
  const Extent extent(args.keys, args.head_dim, args.v_head_dim);
  const Scratch scratch(extent, args.scratch);
  SplitKeys(args, extent, scratch.columns, scratch.k);
  SplitValues(args, extent, scratch.v);
  const Masks masks(args, scratch.mask);
  const auto rows_of = [&](const Position& at) { return std::min(kQueries, query_end - at.first); };
  const auto write = [&](const Position& at) {
    Write(args, extent, at.first, rows_of(at), scratch.output, *scratch.rows[at.block % 3]);
  };
  // Patches in the order of queries, then keys.
  const int64_t key_blocks = extent.key_blocks;
  const int64_t patches = CeilDiv(query_end - query_begin, kQueries) * key_blocks;
  Position next = {.first = query_begin}, current, previous;
  for (int64_t i = 0; i < patches + 2; ++i) {
    const bool has_next = i < patches;
    const bool has_current = i > 0 && i <= patches;
    const bool has_previous = i > 1;
    Softmax softmax;
    if (has_current) {
      const int64_t steps =
          kSteps * ((has_next ? extent.depth : 0) + (has_previous ? extent.columns : 0));
      softmax = Softmax(args, masks, *scratch.patches[(i - 1) % 2],
                        *scratch.rows[current.block % 3], current.first, rows_of(current),
                        current.key_block * kKeys, std::max<int64_t>(1, steps));
    }
    if (has_next) {
      if (next.key_block == 0) SplitQueries(args, next.first, rows_of(next), query_end, scratch.q);
      MultiplyPatch(rows_of(next), args.keys - next.key_block * kKeys, scratch.q,
                    scratch.k + next.key_block * extent.depth * kOperandBytes, extent.depth,
                    /*add=*/false, scratch.patches[i % 2]->scores, softmax);
    }
    if (has_previous) {
      const Patch& patch = *scratch.patches[i % 2];
      const bool first = previous.key_block == 0;
      if (!first && patch.raised) ScaleOutput(extent, patch.factors, scratch.output);
      const std::byte* v = scratch.v + previous.key_block * extent.columns * kOperandBytes;
      for (int64_t pair = 0; pair < extent.columns; ++pair, v += kOperandBytes) {
        MultiplyPatch(rows_of(previous), args.v_head_dim - pair * 2 * kLanes, patch.weights, v,
                      /*depth=*/1, /*add=*/!first, scratch.output + pair * kPatch, softmax);
      }
    }
    softmax.Finish();
    // As late as it may be: the unit is not done at once.
    if (has_previous && previous.key_block + 1 == key_blocks) write(previous);
    previous = current;
    current = next;
    if (++next.key_block == key_blocks) {
      next = {.first = next.first + kQueries, .block = next.block + 1};
    }
  }
  asm volatile("tilerelease");
}

}  // namespace

constexpr AttentionKernels kTileAttentionKernels = {kQueries, TileRows, ScratchFloats};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const AttentionKernels* TileAttentionKernelsFor(Isa isa) {
  return isa >= Isa::kAmx ? &N_AVX3::kTileAttentionKernels : nullptr;
}

bool SuitsTileAttention(int64_t queries, int64_t keys, int64_t head_dim) {
  // As measured on an Intel Xeon (cpuid a0670): with less to do the way into tiles costs more than
  // they save. A depth of 32 is multiplied anyhow.
  constexpr int64_t kFewestQueries = 16, kFewestKeys = 96, kFewestDims = 24;
  return queries >= kFewestQueries && keys >= kFewestKeys && keys <= kMostTileAttentionKeys &&
         head_dim >= kFewestDims;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
