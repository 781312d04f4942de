// Products by weights of a few bits on the vectors' instruction for products of bytes. It
// multiplies four times as many numbers as a multiply-add of floats, and unpacking costs a fourth
// too, as it makes bytes: a lone row waits for memory alone. See gemm_block_digits.h.
#include "runtime/device/cpu/gemm/gemm_block_digits.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_block_digits.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/block_digits-inl.h"
#include "runtime/device/cpu/gemm/digit_panel-inl.h"
#include "runtime/device/cpu/gemm/digit_part-inl.h"
#include "runtime/device/cpu/gemm/digit_tile-inl.h"

#if REPRISE_HAS_VNNI
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Multiplies the rows from the `index`th of the round on, kMost or `rows` of them, by a panel.
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

// Tiles in the registers of vectors.
template <int kDigitsOfRow>
struct VectorTiles {
  static constexpr int kDigits = kDigitsOfRow;
  static constexpr int64_t kRows = kTall<kDigits>;
  static constexpr bool kPlus128 = true;
  static constexpr int64_t kFew = kFewRows<kDigits>;
  struct Session {
    explicit Session(const DigitBlocks&) {}
  };

  static void Fill(const DigitBlocks&, int64_t, int64_t, Unpacked&) {}
  static HWY_INLINE void Run(const TileIn& in, int64_t rows) {
    const auto& tiles =
        in.unpacked.points ? kDigitTiles<kDigits, true> : kDigitTiles<kDigits, false>;
    tiles[static_cast<size_t>(rows - 1)](in);
  }
  template <int kBits>
  static void Few(const GemmArgs& args, const Scratch& scratch, const DigitBlocks& blocks,
                  const char* panel, int64_t column, int64_t begin, int64_t rows) {
    for (int64_t row = 0; row < rows; row += kRows) {
      TileOfFew<kBits, kDigits>(args, scratch, blocks, panel, column, begin, row, rows - row);
    }
  }
};

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
    .scratch_bytes = ScratchBytes<VectorTiles<kDigits>>,
    .part = Part<VectorTiles<kDigits>>};
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
