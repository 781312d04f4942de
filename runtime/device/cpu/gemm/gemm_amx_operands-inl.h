// Converts both sides of a product to operands of the tile unit (AMX): rows of A at once, weights a
// few rows at a time while the unit works. Included inside a kernel file; AVX-512 only.
#if defined(REPRISE_CPU_GEMM_AMX_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_AMX_OPERANDS_INL_H_
#undef REPRISE_CPU_GEMM_AMX_OPERANDS_INL_H_
#else
#define REPRISE_CPU_GEMM_AMX_OPERANDS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
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

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // include guard
