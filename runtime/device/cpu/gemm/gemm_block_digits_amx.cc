// Products by weights of a few bits by the tile unit (AMX) of a CPU: the digits of
// gemm_block_digits.cc and its packed weights, 16 rows by a panel, a block along k at a time.
//
// The unit multiplies the digits of a block by the bytes of 16 columns in one instruction, or in
// two where the block is long. Its sums are integers and exact, as the sums of vectors are, and
// vectors add them to the floats of the rows in the same way: so the results have the bits of
// digit_tile-inl.h. While the unit multiplies a block, the vectors add the one before: a core looks
// some hundred instructions ahead. A block of 32 numbers fills half of the unit; its sums are
// stored for each block, because the factors of rows and columns are the block's own.
//
// An emulation of the unit shows that this is right; its speed has not been measured.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/gemm/gemm_block_digits.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_block_digits_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/digit_panel-inl.h"
#include "runtime/device/cpu/gemm/digit_part-inl.h"
#include "runtime/device/cpu/gemm/digit_tile-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// The instructions that multiply a block, and the numbers that each takes.
struct BlockSteps {
  static constexpr int64_t kMostNumbers = 64;

  explicit BlockSteps(const DigitBlocks& blocks)
      : count((blocks.length + kMostNumbers - 1) / kMostNumbers), numbers(blocks.length / count) {}

  int64_t count;
  int64_t numbers;
};
// Half a block is whole words of A, too.
static_assert(DigitBlocks::kStep % 8 == 0);

// Tiles 0 to 2 are the sums of each digit by 16 columns, 3 to 5 the digits of A's rows, 6 the
// columns.
template <int kDigits>
HWY_INLINE void ZeroSums() {
  Unit::Zero<0>();
  if constexpr (kDigits > 1) {
    Unit::Zero<1>();
    Unit::Zero<2>();
  }
}
template <int kDigits>
HWY_INLINE void LoadDigits(const uint8_t* digits, int64_t stride) {
  Unit::Load<3>(digits, kDigits * stride);
  if constexpr (kDigits > 1) {
    Unit::Load<4>(digits + stride, kDigits * stride);
    Unit::Load<5>(digits + 2 * stride, kDigits * stride);
  }
}
template <int kDigits>
HWY_INLINE void MultiplyDigits() {
  Unit::MultiplyBytes<true, true, 0, 3, 6>();
  if constexpr (kDigits > 1) {
    Unit::MultiplyBytes<true, true, 1, 4, 6>();
    Unit::MultiplyBytes<true, true, 2, 5, 6>();
  }
}

// The sums of a block of a tile, of the digits apart.
template <int kDigits>
struct BlockSums {
  HWY_ALIGN uint32_t words[kDigits][kRowsOfTile][kWidth];
};
template <int kDigits>
HWY_INLINE void StoreSums(BlockSums<kDigits>& sums, int64_t column) {
  Unit::Store<0>(sums.words[0][0] + column, kWordBytes);
  if constexpr (kDigits > 1) {
    Unit::Store<1>(sums.words[1][0] + column, kWordBytes);
    Unit::Store<2>(sums.words[2][0] + column, kWordBytes);
  }
}

// Multiplies the `index`th of the blocks that are unpacked by a tile of rows.
template <int kDigits>
HWY_INLINE void MultiplyBlock(const TileIn& in, const BlockSteps& steps, int64_t index,
                              BlockSums<kDigits>& sums) {
  const uint8_t* const digits = in.digits + index * in.blocks.length;
  const uint32_t* const words = in.unpacked.words + index * in.blocks.length / 4 * kWidth;
  for (int64_t v = 0; v < kWide; ++v) {
    ZeroSums<kDigits>();
    for (int64_t step = 0; step < steps.count; ++step) {
      // Where there is one step the digits of the first columns are there.
      if (v == 0 || steps.count > 1) {
        LoadDigits<kDigits>(digits + step * steps.numbers, in.stride);
      }
      Unit::Load<6>(words + step * steps.numbers / 4 * kWidth + v * kLanes, kWordBytes);
      MultiplyDigits<kDigits>();
    }
    StoreSums<kDigits>(sums, v * kLanes);
  }
}

// Adds the sums of block `b` to the floats of `rows` rows.
template <int kDigits, bool kPoints>
HWY_INLINE void AddBlockOfTile(const TileIn& in, int64_t b, int64_t rows,
                               const BlockSums<kDigits>& of_block) {
  const F32 d;
  const DU32 du;
  const DigitBlocks& blocks = in.blocks;
  const bool offsets = blocks.factor_rows == 2;
  const auto* const factors = reinterpret_cast<const float*>(in.panel + BlockAt(blocks, b));
  const auto* const points = reinterpret_cast<const uint8_t*>(in.panel) + b * kWidth;
  const DigitBlock* HWY_RESTRICT row = in.facts + b;
  float* HWY_RESTRICT sums = in.sums;
  VU32 point[kWide];
  HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
    point[v] = hn::Sub(hn::PromoteTo(du, hn::LoadU(DU8(), points + v * kLanes)), hn::Set(du, 128));
  }
  for (int64_t r = 0; r < rows; ++r, row += blocks.count, sums += kWidth) {
    VU32 digits[kDigits][kWide];
    HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        digits[digit][v] = hn::Load(du, of_block.words[digit][r] + v * kLanes);
        if constexpr (kPoints) {
          AccumulatePairs(digits[digit][v], point[v], hn::Set(du, row->less[digit]));
        }
      }
    }
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      float* const at = sums + v * kLanes;
      hn::Store(AddBlock<kDigits>(digits, v, *row, factors + v * kLanes, offsets, hn::Load(d, at)),
                d, at);
    }
  }
}

template <int kDigits, bool kPoints>
HWY_NOINLINE void UnitTile(const TileIn& in, int64_t rows) {
  const F32 d;
  const BlockSteps steps(in.blocks);
  BlockSums<kDigits> sums[2];
  Ahead ahead = in.ahead;
  if (in.begin == 0) {
    for (int64_t at = 0; at < rows * kWidth; at += kLanes) hn::Store(hn::Zero(d), d, in.sums + at);
  }
  for (int64_t b = in.begin; b < in.end; ++b) {
    MultiplyBlock<kDigits>(in, steps, b - in.begin, sums[b % 2]);
    for (int64_t line = in.blocks.WordsOf(b) * in.per_word; line > 0; --line) {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
      __builtin_prefetch(ahead.next + kLine, /*rw=*/0, /*locality=*/2);
      ahead.next += ahead.step;
    }
    if (b > in.begin) AddBlockOfTile<kDigits, kPoints>(in, b - 1, rows, sums[(b - 1) % 2]);
  }
  AddBlockOfTile<kDigits, kPoints>(in, in.end - 1, rows, sums[(in.end - 1) % 2]);
}

// Tiles of a tile unit, or of its emulation.
template <int kDigitsOfRow>
struct UnitTiles {
  static constexpr int kDigits = kDigitsOfRow;
  static constexpr int64_t kRows = kRowsOfTile;
  static constexpr bool kPlus128 = false;
  static constexpr int64_t kFew = 0;

  class Session {
   public:
    explicit Session(const DigitBlocks& blocks) {
      const auto numbers = static_cast<uint16_t>(BlockSteps(blocks).numbers);
      TileConfig config;
      for (const int digits : {3, 4, 5}) config.row_bytes[digits] = numbers;
      config.rows[6] = static_cast<uint8_t>(numbers / 4);
      Unit::Configure(config);
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() { Unit::Release(); }
  };

  // Fills the tile. The unit reads whole blocks: after the last number of k the digits belong to
  // something else, so the words there are 0.
  static void Fill(const DigitBlocks& blocks, int64_t begin, int64_t end, Unpacked& unpacked) {
    if (end < blocks.count) return;
    const int64_t block = blocks.length / 4;
    const int64_t live = blocks.last_words * (blocks.length / 4 / blocks.words);
    uint32_t* const words = unpacked.words + (end - 1 - begin) * block * kWidth;
    std::memset(words + live * kWidth, 0,
                static_cast<size_t>((block - live) * kWidth) * sizeof(uint32_t));
  }

  static HWY_INLINE void Run(const TileIn& in, int64_t rows) {
    in.unpacked.points ? UnitTile<kDigits, true>(in, rows) : UnitTile<kDigits, false>(in, rows);
  }
};

template <int kDigits>
constexpr BlockDigitKernels kUnitKernels = {
    // Estimated, not measured: unpacking takes half of the time of a tile's sums, A's rows more.
    .division = {.panel_columns = kWidth,
                 .vector_columns = kLanes,
                 .tile_rows = kRowsOfTile,
                 .costs = {.panel = 0.6, .row_tile = 1.5, .shared_tile = 2.0}},
    .packed_bytes = PackedBytes,
    .pack = nullptr,
    .scratch_bytes = ScratchBytes<UnitTiles<kDigits>>,
    .part = Part<UnitTiles<kDigits>>};

}  // namespace

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const BlockDigitKernels* TileBlockDigitKernelsFor(Isa isa, bool rounded) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAmx)) {
    return rounded ? &N_AVX3::kUnitKernels<1> : &N_AVX3::kUnitKernels<N_AVX3::kExactDigits>;
  }
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
