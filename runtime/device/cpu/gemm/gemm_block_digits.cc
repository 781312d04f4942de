// Products by weights of a few bits on the vectors' instruction for products of bytes. It
// multiplies four times as many numbers as a multiply-add of floats, and unpacking costs a fourth
// too, as it makes bytes: a lone row waits for memory alone. See gemm_block_digits.h.
#include "runtime/device/cpu/gemm/gemm_block_digits.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/block_words.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_block_digits.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/block_digits-inl.h"
#include "runtime/device/cpu/gemm/digit_panel-inl.h"
#include "runtime/device/cpu/gemm/digit_tile-inl.h"

#if REPRISE_HAS_VNNI
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Digits of A that stay in the L2 cache with a panel.
constexpr int64_t kMaxBytesOfA = 1 << 19;
constexpr int64_t kMostRows = 384;
template <int kDigits>
int64_t MaxRows(int64_t k) {
  constexpr int64_t kTile = kTall<kDigits>;
  const int64_t rows = kMaxBytesOfA / (kDigits * BlockDigitStride(k));
  return std::clamp<int64_t>(rows / kTile, 2, kMostRows / kTile) * kTile;
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

template <int kDigits>
int64_t WholeTiles(int64_t rows) {
  return (rows + kTall<kDigits> - 1) / kTall<kDigits> * kTall<kDigits>;
}

template <int kDigits>
int64_t RowsOfRound(int64_t m, int64_t k) {
  const int64_t rounds = (m + MaxRows<kDigits>(k) - 1) / MaxRows<kDigits>(k);
  return WholeTiles<kDigits>((m + rounds - 1) / rounds);
}

template <int kDigits>
int64_t ScratchBytes(int64_t m, int64_t k, const BlockForm& form) {
  // A part has `m` rows or fewer, whose rounds may be longer.
  const int64_t rows = std::min(MaxRows<kDigits>(k), WholeTiles<kDigits>(m));
  return Scratch(nullptr, rows, kDigits, DigitBlocks(form, k)).size;
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

// The rows from the `index`th of the round on, kMost or `rows` of them, by a panel.
template <int kBits, int kDigits, int kMost = kTall<kDigits>>
HWY_INLINE void TileOfFew(const GemmArgs& args, const Scratch& scratch, const DigitBlocks& blocks,
                          const char* panel, int64_t column, int64_t begin, int64_t index,
                          int64_t rows) {
  if (rows >= kMost) {
    FewRows<kBits, kDigits, kMost>(scratch.digits + index * kDigits * scratch.stride,
                                   scratch.stride, scratch.facts + index * blocks.count, blocks,
                                   panel, scratch.sums + index * kWidth);
    FinishRows<kBits, kMost>(args, scratch, blocks, panel, column, begin + index, index);
  } else if constexpr (kMost > 1) {
    TileOfFew<kBits, kDigits, kMost - 1>(args, scratch, blocks, panel, column, begin, index, rows);
  }
}

// `rows` rows from `begin` on by a panel; `scratch` has their digits.
template <int kBits, int kDigits>
void PanelOfRows(const GemmArgs& args, const Scratch& scratch, const DigitBlocks& blocks,
                 const char* panel, int64_t column, int64_t begin, int64_t rows,
                 Unpacked& unpacked) {
  constexpr int64_t kTile = kTall<kDigits>;
  const int64_t most = kMostDepth / blocks.length;
  const int64_t tiles_of_rows = (rows + kTile - 1) / kTile;
  for (int64_t b = 0; b < blocks.count; b += most) {
    const int64_t last = std::min(b + most, blocks.count);
    Unpack<kBits>(panel, blocks, b, last, unpacked);
    // The next weights lie after these blocks; each tile prefetches its share.
    const char* const start = panel + BlockAt(blocks, b);
    const int64_t bytes = BlockAt(blocks, last) - BlockAt(blocks, b);
    const int64_t steps = (last - b) * blocks.words * kHalves<kBits>;
    Ahead ahead = {start + bytes, bytes / (steps * tiles_of_rows)};
    const auto& tiles = unpacked.points ? kDigitTiles<kDigits, true> : kDigitTiles<kDigits, false>;
    for (int64_t row = 0; row < rows; row += kTile, ahead.next += ahead.step * steps) {
      tiles[std::min<int64_t>(rows - row, kTile) - 1](
          {.digits = scratch.digits + row * kDigits * scratch.stride + b * blocks.length,
           .stride = scratch.stride,
           .facts = scratch.facts + row * blocks.count,
           .blocks = blocks,
           .begin = b,
           .end = last,
           .unpacked = unpacked,
           .per_word = kHalves<kBits>,
           .panel = panel,
           .ahead = ahead,
           .sums = scratch.sums + row * kWidth});
    }
  }
  int64_t row = 0;
  for (; row + kTile <= rows; row += kTile) {
    FinishRows<kBits, kTall<kDigits>>(args, scratch, blocks, panel, column, begin + row, row);
  }
  for (; row < rows; ++row) {
    FinishRows<kBits, 1>(args, scratch, blocks, panel, column, begin + row, row);
  }
}

template <int kBits, int kDigits>
void PartOf(const GemmArgs& args, const DigitBlocks& blocks, const GemmPart& part) {
  Unpacked unpacked;
  const auto* const packed = static_cast<const char*>(args.packed_b);
  const int64_t round = RowsOfRound<kDigits>(part.row_end - part.row_begin, args.k);
  const Scratch scratch(static_cast<std::byte*>(args.scratch), round, kDigits, blocks);
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += round) {
    const int64_t end = std::min(begin + round, part.row_end);
    const bool few = end - begin <= kFewRows<kDigits>;
    for (int64_t row = begin, i = 0; row < end; ++row, ++i) {
      SplitRow<kBits, kDigits>(args.a + row * args.lda, blocks, /*plus128=*/!few,
                               scratch.digits + i * kDigits * scratch.stride, scratch.stride,
                               scratch.facts + i * blocks.count, scratch.outliers[i]);
    }
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const char* const of_panel = packed + panel * PanelBytes(blocks);
      if (!few) {
        PanelOfRows<kBits, kDigits>(args, scratch, blocks, of_panel, panel * kWidth, begin,
                                    end - begin, unpacked);
        continue;
      }
      for (int64_t row = 0; row < end - begin; row += kTall<kDigits>) {
        TileOfFew<kBits, kDigits>(args, scratch, blocks, of_panel, panel * kWidth, begin, row,
                                  end - begin - row);
      }
    }
  }
}

template <int kDigits>
void Part(const GemmArgs& args, const BlockForm& form, const GemmPart& part) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const DigitBlocks blocks(form, args.k);
  form.bits == 4 ? PartOf<4, kDigits>(args, blocks, part) : PartOf<8, kDigits>(args, blocks, part);
}

void Pack(const BlockSource& b, const BlockForm& form, int64_t k, int64_t n, void* packed) {
  const DigitBlocks blocks(form, k);
  const int64_t given = form.Blocks(k);
  // With offsets numbers of 4 bits are counted from 0.
  const auto middle = static_cast<float>(form.offsets && form.bits == 4 ? 0 : 1 << (form.bits - 1));
  const float* const points_of_b = form.offsets ? nullptr : b.points;
  std::memset(packed, 0, static_cast<size_t>(PackedBytes(k, n, form)));
  for (int64_t column = 0; column < n; column += kWidth) {
    const int64_t live = std::min(kWidth, n - column);
    char* const panel = static_cast<char*>(packed) + column / kWidth * PanelBytes(blocks);
    char* to = panel + PointBytes(blocks);
    const uint8_t* const numbers = b.numbers + column * b.row_bytes;
    for (int64_t block = 0; block < blocks.count; ++block) {
      auto* const points = reinterpret_cast<uint8_t*>(panel) + block * kWidth;
      auto* const factors = reinterpret_cast<float*>(to);
      for (int64_t j = 0; j < live; ++j) {
        const int64_t at = (column + j) * given + block / blocks.of_form;
        factors[j] = b.scales[at];
        points[j] = static_cast<uint8_t>(points_of_b == nullptr ? middle : points_of_b[at]);
        if (form.offsets) factors[kWidth + j] = b.points[at];
      }
      to += blocks.factor_rows * kWordBytes;
      const int64_t end = std::min(k, (block + 1) * blocks.length);
      for (int64_t i = block * blocks.length; i < end; i += form.PerWord(), to += kWordBytes) {
        const int64_t end_of_word = std::min(end, i + form.PerWord());
        auto* const words = reinterpret_cast<uint32_t*>(to);
        for (int64_t j = 0; j < live; ++j) {
          words[j] = WordAt(b, form, numbers + j * b.row_bytes, i, end_of_word);
        }
      }
    }
  }
}

}  // namespace

template <int kDigits>
constexpr BlockDigitKernels kKernelsOfDigits = {
    // A row tile's digits take a fifth of the time of its products with a panel; unpacking as much
    // as a low tile.
    .division = {.panel_columns = kWidth,
                 .vector_columns = kLanes,
                 .tile_rows = kTall<kDigits>,
                 .costs = {.panel = 0.5, .row_tile = 0.5, .shared_tile = 1.0}},
    .packed_bytes = PackedBytes,
    .pack = Pack,
    .scratch_bytes = ScratchBytes<kDigits>,
    .part = Part<kDigits>};
constexpr const BlockDigitKernels& kBlockDigitKernels = kKernelsOfDigits<kExactDigits>;
constexpr const BlockDigitKernels& kRoundedBlockKernels = kKernelsOfDigits<1>;

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // REPRISE_HAS_VNNI

#if HWY_ONCE
namespace reprise::cpu {

const BlockDigitKernels* BlockDigitKernelsFor(Isa isa, bool rounded) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAvx512Vnni)) {
    return rounded ? &N_AVX3::kRoundedBlockKernels : &N_AVX3::kBlockDigitKernels;
  }
#endif
#if REPRISE_WITH_AVX2
  if (isa.Has(CpuFeature::kAvxVnni) && !isa.Has(CpuFeature::kAvx512)) {
    return rounded ? &N_AVX2::kRoundedBlockKernels : &N_AVX2::kBlockDigitKernels;
  }
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
