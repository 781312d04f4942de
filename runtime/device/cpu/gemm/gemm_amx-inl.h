// Both ends of a product of floats by the tile unit (AMX): converts both sides to its operands,
// rows of A at once, weights a few rows at a time while the unit works; and finishes its sums on
// their way to C. Included inside a kernel file; AVX-512 only.
#if defined(REPRISE_CPU_GEMM_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_AMX_INL_H_
#undef REPRISE_CPU_GEMM_AMX_INL_H_
#else
#define REPRISE_CPU_GEMM_AMX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// An int8 is one number that the unit multiplies, a float three.
template <class Element>
constexpr int kPartsOf = sizeof(Element) == 1 ? 1 : kParts;

// The next kDepth of a row tile of A, and of a panel of Elements.
constexpr int64_t kBytesOfA = kParts * kTileBytes;
template <class Element>
constexpr int64_t kBytesOfB = kPartsOf<Element>* kVectors* kTileBytes;

constexpr int64_t Blocks(int64_t k) { return (k + kDepth - 1) / kDepth; }
constexpr int64_t RowTiles(int64_t m) { return (m + kRowsOfTile - 1) / kRowsOfTile; }

// Splits rows [0, rows) of A, at most kRowsOfTile, into tiles: [block][part][row][kDepth]. It goes
// block by block: a row at a time would write lines that share few sets of the L1 cache.
void SplitRows(const float* a, int64_t lda, int64_t rows, int64_t k, std::byte* to) {
  const F32 d;
  const Bits du;
  for (int64_t at = 0; at < k; at += kDepth, to += kBytesOfA) {
    const float* HWY_RESTRICT from = a + at;
    auto* HWY_RESTRICT out = reinterpret_cast<uint32_t*>(to);
    const bool whole = at + kDepth <= k;
    for (int64_t r = 0; r < rows; ++r, from += lda, out += kLanes) {
      const VF low_in = whole ? hn::LoadU(d, from) : LoadFirst(d, from, k - at);
      const VF high_in =
          whole ? hn::LoadU(d, from + kLanes) : LoadFirst(d, from + kLanes, k - at - kLanes);
      const Split low = SplitFinite(low_in);
      const Split high = SplitFinite(high_in);
      HWY_UNROLL(3) for (int p = 0; p < kParts; ++p) {
        hn::Store(Pair(low.parts[p], high.parts[p]), du, out + p * kTileBytes / 4);
      }
    }
  }
}

HWY_INLINE VF LoadWeights(F32 d, const int8_t* p) {
  const hn::Rebind<int8_t, F32> d8;
  const hn::Rebind<int32_t, F32> d32;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, p)));
}
HWY_INLINE VF LoadWeights(F32 d, const float* p) { return hn::LoadU(d, p); }

// A row of zeros, which is read after the last row of a panel.
template <class Element>
HWY_ALIGN constexpr Element kNoRow[kPanel] = {};

// Converts a stretch of a packed panel to tiles, [block][part][16 columns][kDepth / 2 pairs of
// rows], a few pairs of rows at a time, while the unit multiplies.
template <class Element>
class Making {
 public:
  Making() = default;
  // Converts `rows` rows from `from` on, in `turns` turns; if that is 0, Finish converts them all.
  Making(const Element* from, int64_t rows, std::byte* to, int64_t turns)
      : from_(from),
        rows_(rows),
        to_(to),
        pairs_(Blocks(rows) * kPairsOfBlock),
        per_turn_(turns == 0 ? 0 : (pairs_ * kOne + turns - 1) / turns) {}

  HWY_INLINE void TakeTurn() {
    due_ += per_turn_;
    const int64_t end = due_ >> kOneBits;
    if (end > next_ && next_ < pairs_) MakeTo(std::min(end, pairs_));
  }
  void Finish() { MakeTo(pairs_); }

 private:
  static constexpr int64_t kPairsOfBlock = kDepth / 2;
  static constexpr int kOneBits = 16;
  static constexpr int64_t kOne = int64_t{1} << kOneBits;

  HWY_NOINLINE void MakeTo(int64_t end) {
    while (next_ < end) {
      const int64_t i = next_ % kPairsOfBlock;
      const int64_t row = (next_ - i) * 2 + i;
      const int64_t count = std::min(end - next_, kPairsOfBlock - i);
      const Element* const low = from_ + row * kPanel;
      auto* const out =
          reinterpret_cast<uint32_t*>(to_ + next_ / kPairsOfBlock * kBytesOfB<Element>) +
          i * kLanes;
      if (row + kPairsOfBlock + count <= rows_) {
        for (int64_t pair = 0; pair < count; ++pair) {
          const Element* const at = low + pair * kPanel;
          AskAheadOf(at);
          AskAheadOf(at + kPairsOfBlock * kPanel);
          MakePair(at, at + kPairsOfBlock * kPanel, out + pair * kLanes);
        }
      } else {
        for (int64_t pair = 0; pair < count; ++pair) {
          const auto row_at = [&](int64_t at) {
            return row + at < rows_ ? low + at * kPanel : kNoRow<Element>;
          };
          MakePair(row_at(pair), row_at(kPairsOfBlock + pair), out + pair * kLanes);
        }
      }
      next_ += count;
    }
  }

  // Weights come from beyond the L2 cache: this prefetches the line that far after a row.
  static HWY_INLINE void AskAheadOf(const Element* row) {
    constexpr int64_t kAhead = sizeof(Element) == 1 ? 8 << 10 : 16 << 10;
    constexpr int64_t kBytes = kPanel * static_cast<int64_t>(sizeof(Element));
    const auto* const ahead = reinterpret_cast<const std::byte*>(row) + kAhead;
    HWY_UNROLL(3) for (int64_t at = 0; at < kBytes; at += 64) {
      __builtin_prefetch(ahead + at, /*rw=*/0, /*locality=*/2);
    }
  }

  // Converts one row of each tile of a block.
  static HWY_INLINE void MakePair(const Element* HWY_RESTRICT low, const Element* HWY_RESTRICT high,
                                  uint32_t* HWY_RESTRICT out) {
    const F32 d;
    const Bits du;
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
      const VF x = LoadWeights(d, low + v * kLanes);
      const VF y = LoadWeights(d, high + v * kLanes);
      uint32_t* HWY_RESTRICT tile = out + v * (kTileBytes / 4);
      if constexpr (kPartsOf<Element> == 1) {
        hn::Store(Pair(x, y), du, tile);
      } else {
        const Split low_parts = SplitFinite(x), high_parts = SplitFinite(y);
        HWY_UNROLL(3) for (int p = 0; p < kParts; ++p) {
          hn::Store(Pair(low_parts.parts[p], high_parts.parts[p]), du,
                    tile + p * kVectors * (kTileBytes / 4));
        }
      }
    }
  }

  const Element* from_ = nullptr;  // [rows_][kPanel]
  int64_t rows_ = 0;
  std::byte* to_ = nullptr;
  int64_t pairs_ = 0;
  int64_t per_turn_ = 0;  // pairs, times kOne
  int64_t due_ = 0;       // pairs, times kOne
  int64_t next_ = 0;
};

// The most row tiles whose sums the unit holds at a time.
constexpr int64_t kHeldTiles = 2;

// Finishes sums on their way to C, a few rows at a time while the unit computes the next ones.
template <class Element>
class Waiting {
 public:
  Waiting() = default;
  // Finishes `rows` rows of `sums`, [rows][kPanel], at most kHeldTiles: the product of `a` and
  // `panel`, in `turns` turns.
  Waiting(float* sums, int64_t rows, const TileOut& out, const float* a, const GemmArgs& args,
          const Element* panel, int64_t turns)
      : out_(out),
        sums_(sums),
        rows_(rows),
        per_turn_((rows * kOne + turns - 1) / turns),
        a_(a),
        lda_(args.lda),
        k_(args.k),
        panel_(panel) {}

  HWY_INLINE void TakeTurn() {
    due_ += per_turn_;
    const int64_t end = due_ >> kOneBits;
    if (end > next_ && next_ < rows_) FinishTo(std::min(end, rows_));
  }
  void Finish() {
    if (next_ < rows_) FinishTo(rows_);
  }

 private:
  static constexpr int kOneBits = 16;
  static constexpr int64_t kOne = int64_t{1} << kOneBits;

  HWY_NOINLINE void FinishTo(int64_t end) {
    if (next_ == 0) Mend();
    if (out_.columns < kPanel) {
      FinishNarrow(end);
    } else {
      FinishRows(end);
    }
    next_ = end;
  }

  // Sums that are NaN are computed again as floats: one of their operands is infinite or NaN, or a
  // sum became infinite on the way.
  void Mend() {
    const F32 d;
    const VF zero = hn::Zero(d);
    // 0 times a finite number is 0.
    VF odd[kVectors] = {zero, zero, zero};
    for (int64_t r = 0; r < rows_; ++r) {
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
        odd[v] = hn::MulAdd(hn::Load(d, sums_ + r * kPanel + v * kLanes), zero, odd[v]);
      }
    }
    if (hn::AllFalse(d, hn::IsNaN(hn::Add(hn::Add(odd[0], odd[1]), odd[2])))) return;
    for (int64_t r = 0; r < rows_; ++r) MendRow(a_ + r * lda_, sums_ + r * kPanel);
  }
  HWY_NOINLINE void MendRow(const float* a, float* row) const {
    const F32 d;
    bool right = true;
    for (int v = 0; v < kVectors; ++v) {
      right &= hn::AllFalse(d, hn::IsNaN(hn::Load(d, row + v * kLanes)));
    }
    if (right) return;
    VF again[kVectors] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (int64_t i = 0; i < k_; ++i) {
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
        again[v] = hn::MulAdd(hn::Set(d, a[i]), LoadWeights(d, panel_ + i * kPanel + v * kLanes),
                              again[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      const VF x = hn::Load(d, row + v * kLanes);
      hn::Store(hn::IfThenElse(hn::IsNaN(x), again[v], x), d, row + v * kLanes);
    }
  }

  // Makes one pass from the sums to C.
  template <Activation activation>
  HWY_NOINLINE void FinishWhole(int64_t end) const {
    const F32 d;
    VF scale[kVectors], bias[kVectors];
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
      scale[v] = out_.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, out_.scale + v * kLanes);
      bias[v] = out_.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, out_.bias + v * kLanes);
    }
    const float* HWY_RESTRICT from = sums_ + next_ * kPanel;
    float* c = out_.c + next_ * out_.ldc;
    const float* residual =
        out_.residual == nullptr ? nullptr : out_.residual + next_ * out_.ld_residual;
    for (int64_t r = next_; r < end; ++r, from += kPanel, c += out_.ldc) {
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
        // Two roundings, as everywhere else.
        VF x = hn::Add(hn::Mul(hn::Load(d, from + v * kLanes), scale[v]), bias[v]);
        x = Activate(d, x, activation);
        if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual + v * kLanes));
        hn::StoreU(x, d, c + v * kLanes);
      }
      if (residual != nullptr) residual += out_.ld_residual;
    }
  }
  void FinishRows(int64_t end) const {
    WithActivation(out_.activation,
                   [&](auto activation) HWY_ATTR { FinishWhole<activation>(end); });
  }
  // Finishes the last panel, where it is not whole.
  HWY_NOINLINE void FinishNarrow(int64_t end) const {
    const F32 d;
    HWY_ALIGN float tile[kHeldTiles * kRowsOfTile * kPanel];
    for (int v = 0; v < kVectors; ++v) {
      const int64_t live = out_.columns - v * kLanes;
      const VF scale =
          out_.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, out_.scale + v * kLanes);
      const VF bias =
          out_.bias == nullptr ? hn::Zero(d) : LoadFirst(d, out_.bias + v * kLanes, live);
      for (int64_t r = next_; r < end; ++r) {
        const VF x = hn::Load(d, sums_ + r * kPanel + v * kLanes);
        hn::Store(hn::Add(hn::Mul(x, scale), bias), d, tile + (r - next_) * kPanel + v * kLanes);
      }
    }
    FinishTile(tile, static_cast<int>(end - next_), out_.Below(next_));
  }

  TileOut out_ = {};
  float* sums_ = nullptr;  // [rows][kPanel]
  int64_t rows_ = 0;
  int64_t next_ = 0;
  int64_t per_turn_ = 0;  // rows, times kOne
  int64_t due_ = 0;       // rows, times kOne
  // The operands that the sums were made from.
  const float* a_ = nullptr;
  int64_t lda_ = 0;
  int64_t k_ = 0;
  const Element* panel_ = nullptr;  // [k_][kPanel]
};

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // include guard
