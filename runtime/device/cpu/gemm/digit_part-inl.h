// Parts of a product by digits: rows of A round by round, panel after panel. `Tiles` multiply tiles
// of kRows rows of kDigits digits, which are unsigned and have 128 added where kPlus128, by an
// unpacked panel (Run). Up to kFew rows do without one (Few). A Session lives as long as a part,
// and Fill follows each Unpack.
//
// Included inside a kernel file after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_DIGIT_PART_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_DIGIT_PART_INL_H_
#undef REPRISE_CPU_DIGIT_PART_INL_H_
#else
#define REPRISE_CPU_DIGIT_PART_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/block_digits-inl.h"
#include "runtime/device/cpu/gemm/digit_panel-inl.h"
#include "runtime/device/cpu/gemm/digit_tile-inl.h"

#if REPRISE_HAS_VNNI
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Digits of A that stay in the L2 cache with a panel.
constexpr int64_t kMaxBytesOfA = 1 << 19;
template <int kDigits>
constexpr int64_t kMostRows = kDigits == 1 ? 576 : 384;
template <class Tiles>
int64_t MaxRows(int64_t k) {
  const int64_t rows = kMaxBytesOfA / (Tiles::kDigits * BlockDigitStride(k));
  return std::clamp<int64_t>(rows / Tiles::kRows, 2, kMostRows<Tiles::kDigits> / Tiles::kRows) *
         Tiles::kRows;
}

// A part needs, besides its operands: the digits of a round of rows, the facts of their
// blocks and their outliers, and sums that wait for the rest of k.
struct Scratch {
  Scratch(std::byte* at, int64_t rows, int64_t kDigits, const DigitBlocks& blocks)
      : stride(BlockDigitStride(blocks.k)) {
    const auto take = [&](int64_t bytes) {
      std::byte* const taken = at == nullptr ? nullptr : at + size;
      size += static_cast<int64_t>(AlignUp(static_cast<size_t>(bytes)));
      return taken;
    };
    sums = reinterpret_cast<float*>(take(rows * kWordBytes));
    digits = reinterpret_cast<uint8_t*>(take(rows * kDigits * stride));
    facts = reinterpret_cast<DigitBlock*>(take(rows * blocks.count * int64_t{sizeof(DigitBlock)}));
    outliers = reinterpret_cast<DigitOutliers*>(take(rows * int64_t{sizeof(DigitOutliers)}));
  }

  int64_t size = 0;
  int64_t stride;
  float* sums;      // [rows][kWidth]
  uint8_t* digits;  // [rows][kDigits][stride]
  DigitBlock* facts;
  DigitOutliers* outliers;
};

template <class Tiles>
int64_t WholeTiles(int64_t rows) {
  return (rows + Tiles::kRows - 1) / Tiles::kRows * Tiles::kRows;
}

template <class Tiles>
int64_t RowsOfRound(int64_t m, int64_t k) {
  const int64_t rounds = (m + MaxRows<Tiles>(k) - 1) / MaxRows<Tiles>(k);
  return WholeTiles<Tiles>((m + rounds - 1) / rounds);
}

template <class Tiles>
int64_t ScratchBytes(int64_t m, int64_t k, const BlockForm& form) {
  // A part has `m` rows or fewer, whose rounds may be longer.
  const int64_t rows = std::min(MaxRows<Tiles>(k), WholeTiles<Tiles>(m));
  return Scratch(nullptr, rows, Tiles::kDigits, DigitBlocks(form, k)).size;
}

// Adds to the sums of a row of A the elements that are not split into digits.
template <int kBits>
HWY_NOINLINE void AddOutliers(const DigitOutliers& outliers, const float* a,
                              const DigitBlocks& blocks, const char* panel, VF (&sums)[kWide]) {
  for (int i = 0; i < outliers.count; ++i) {
    AddElement<kBits>(blocks, panel, outliers.block[i], outliers.at[i], outliers.value[i], sums);
  }
  if (outliers.count != kAll) return;
  HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) sums[v] = hn::Zero(F32());
  for (int64_t i = 0; i < blocks.k; ++i) {
    AddElement<kBits>(blocks, panel, i / blocks.length, i % blocks.length, a[i], sums);
  }
}

// kRows rows of C from `row` on, the `index`th of the round, get their sums of a panel.
template <int kBits, int kRows>
HWY_NOINLINE void FinishRows(const GemmArgs& args, const Scratch& scratch,
                             const DigitBlocks& blocks, const char* panel, int64_t column,
                             int64_t row, int64_t index) {
  const F32 d;
  VF sums[kRows][kWide];
  HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      sums[r][v] = hn::Load(d, scratch.sums + (index + r) * kWidth + v * kLanes);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const DigitOutliers& outliers = scratch.outliers[index + r];
    if (outliers.count == 0) continue;
    AddOutliers<kBits>(outliers, args.a + (row + r) * args.lda, blocks, panel, sums[r]);
  }
  FinishSums(sums, TileOutOf(args, nullptr, row, column, kWidth));
}

// `rows` rows from `begin` on by a panel; `scratch` has their digits.
template <int kBits, class Tiles>
void PanelOfRows(const GemmArgs& args, const Scratch& scratch, const DigitBlocks& blocks,
                 const char* panel, int64_t column, int64_t begin, int64_t rows,
                 Unpacked& unpacked) {
  constexpr int64_t kTile = Tiles::kRows;
  constexpr int kDigits = Tiles::kDigits;
  const int64_t most = kMostDepth / blocks.length;
  const int64_t tiles_of_rows = (rows + kTile - 1) / kTile;
  for (int64_t b = 0; b < blocks.count; b += most) {
    const int64_t last = std::min(b + most, blocks.count);
    Unpack<kBits>(panel, blocks, b, last, unpacked);
    Tiles::Fill(blocks, b, last, unpacked);
    // The next weights lie after these blocks; each tile prefetches its share.
    const char* const start = panel + BlockAt(blocks, b);
    const int64_t bytes = BlockAt(blocks, last) - BlockAt(blocks, b);
    const int64_t steps = (last - b) * blocks.words * kHalves<kBits>;
    Ahead ahead = {start + bytes, bytes / (steps * tiles_of_rows)};
    for (int64_t row = 0; row < rows; row += kTile, ahead.next += ahead.step * steps) {
      Tiles::Run({.digits = scratch.digits + row * kDigits * scratch.stride + b * blocks.length,
                  .stride = scratch.stride,
                  .facts = scratch.facts + row * blocks.count,
                  .blocks = blocks,
                  .begin = b,
                  .end = last,
                  .unpacked = unpacked,
                  .per_word = kHalves<kBits>,
                  .panel = panel,
                  .ahead = ahead,
                  .sums = scratch.sums + row * kWidth},
                 std::min<int64_t>(rows - row, kTile));
    }
  }
  constexpr int kFinished = kTall<kDigits>;
  int64_t row = 0;
  for (; row + kFinished <= rows; row += kFinished) {
    FinishRows<kBits, kFinished>(args, scratch, blocks, panel, column, begin + row, row);
  }
  for (; row < rows; ++row) {
    FinishRows<kBits, 1>(args, scratch, blocks, panel, column, begin + row, row);
  }
}

template <int kBits, class Tiles>
void PartOf(const GemmArgs& args, const DigitBlocks& blocks, const GemmPart& part) {
  constexpr int kDigits = Tiles::kDigits;
  Unpacked unpacked;
  [[maybe_unused]] const typename Tiles::Session session(blocks);
  const auto* const packed = static_cast<const char*>(args.packed_b);
  const int64_t round = RowsOfRound<Tiles>(part.row_end - part.row_begin, args.k);
  const Scratch scratch(static_cast<std::byte*>(args.scratch), round, kDigits, blocks);
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += round) {
    const int64_t end = std::min(begin + round, part.row_end);
    const bool few = end - begin <= Tiles::kFew;
    // Tiles subtract the zero points of 4 bits from weights.
    const bool sums = few || kBits == 8 || blocks.factor_rows == 2;
    for (int64_t row = begin, i = 0; row < end; ++row, ++i) {
      SplitRow<kBits, kDigits>(args.a + row * args.lda, blocks, Tiles::kPlus128 && !few, sums,
                               scratch.digits + i * kDigits * scratch.stride, scratch.stride,
                               scratch.facts + i * blocks.count, scratch.outliers[i]);
    }
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const char* const of_panel = packed + panel * PanelBytes(blocks);
      if constexpr (Tiles::kFew > 0) {
        if (few) {
          Tiles::template Few<kBits>(args, scratch, blocks, of_panel, panel * kWidth, begin,
                                     end - begin);
          continue;
        }
      }
      PanelOfRows<kBits, Tiles>(args, scratch, blocks, of_panel, panel * kWidth, begin, end - begin,
                                unpacked);
    }
  }
}

template <class Tiles>
void Part(const GemmArgs& args, const BlockForm& form, const GemmPart& part) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const DigitBlocks blocks(form, args.k);
  form.bits == 4 ? PartOf<4, Tiles>(args, blocks, part) : PartOf<8, Tiles>(args, blocks, part);
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // REPRISE_HAS_VNNI

#endif  // include guard
