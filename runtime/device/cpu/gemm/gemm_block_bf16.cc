// Products of rows in bfloat16 by weights of a few bits. Numbers of 4 bits are looked up, 32 at a
// time; few rows do that in registers, each tile for itself, more have a panel unpacked once. See
// gemm_blocks.h.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_block_bf16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/block_pairs-inl.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/gemm/gemm_stretch-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Rows of a tile: their sums, of a block and of all, are 24 of the 32 vectors. Tiles over a panel
// that is unpacked are taller, and keep the sums of all blocks in memory.
constexpr int kTall = 6;
constexpr int kTallest = 12;
// Up to so many rows have tiles that unpack the panel on the way: a lookup makes 32 numbers of 4
// bits, numbers of 8 bits take three times the time.
template <int kBits>
constexpr int64_t kFewRows = (kBits == 4 ? 4 : 1) * kTall;
// The limit on rounded rows of A, which stay in the L2 cache while all panels pass by.
constexpr int64_t kMaxBytesOfA = 1 << 18;
// A tile of rows by a panel.
struct BlockTileIn {
  const float* a;     // pairs, `row_words` of the shape from one row to the next
  const float* sums;  // sums of blocks, `blocks` of the shape from one row to the next
  const Shape& shape;
  const char* panel;
  uint32_t* unpacked;  // the same, unpacked: read or written
  Ahead ahead;         // prefetched meanwhile: a step for each block
};

// The sums of all blocks of a tile: in registers, or in memory.
template <int kRows, bool kInMemory = (kRows > kTall)>
struct Totals {
  HWY_INLINE Totals() {
    HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) sums[r][v] = hn::Zero(F32());
    }
  }
  HWY_INLINE VF Get(int r, int v) const { return sums[r][v]; }
  HWY_INLINE void Set(int r, int v, VF sum) { sums[r][v] = sum; }

  VF sums[kRows][kBf16Vectors];
};
template <int kRows>
struct Totals<kRows, true> {
  HWY_INLINE Totals() {
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) Set(r, v, hn::Zero(F32()));
    }
  }
  HWY_INLINE VF Get(int r, int v) const {
    return hn::Load(F32(), floats + r * kBf16Panel + v * kLanes);
  }
  HWY_INLINE void Set(int r, int v, VF sum) {
    hn::Store(sum, F32(), floats + r * kBf16Panel + v * kLanes);
  }

  HWY_ALIGN float floats[kRows * kBf16Panel];
};

// A tile reads the unpacked panel; unpacks on the way; or does so and
// writes it for the tiles after it. The multipliers leave room for unpacking.
enum class Unpacks { kNothing, kOnTheWay, kForOthers };

template <int kBits, int kRows, bool kOffsets, Unpacks kUnpacks>
HWY_NOINLINE void BlockTile(const BlockTileIn& in, const TileOut& out) {
  const F32 d;
  const U32 du;
  const Shape shape = in.shape;
  const int64_t lda = shape.row_words;
  const float* HWY_RESTRICT a = in.a;
  // Every third row of A has a pointer; the two after it are an index away.
  const float* HWY_RESTRICT a3 = kRows > 3 ? Kept(a + 3 * lda) : nullptr;
  const float* HWY_RESTRICT a6 = kRows > 6 ? Kept(a + 6 * lda) : nullptr;
  const float* HWY_RESTRICT a9 = kRows > 9 ? Kept(a + 9 * lda) : nullptr;
  const char* HWY_RESTRICT from = in.panel;
  uint32_t* HWY_RESTRICT words = in.unpacked;
  const float* HWY_RESTRICT sums = in.sums;
  const VU table = TableOf(shape);
  Ahead ahead = in.ahead;
  Totals<kRows> totals;
  for (int64_t b = 0; b < shape.blocks; ++b, ++sums) {
    const auto* const factors = reinterpret_cast<const float*>(from);
    if constexpr (kUnpacks != Unpacks::kNothing) REPRISE_FETCH_BLOCK_WORDS(from)
    from += shape.factor_rows * kWordBytes;
    VF acc[kRows][kBf16Vectors];
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) acc[r][v] = hn::Zero(d);
    }
    const auto step = [&](const VU(&pairs)[kBf16Vectors]) HWY_ATTR {
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
        const float* const group = r < 3 ? a : r < 6 ? a3 : r < 9 ? a6 : a9;
        const VF of_a = hn::Set(d, group[r % 3 * lda]);
        HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
          AccumulatePairs(acc[r][v], of_a, hn::BitCast(d, pairs[v]));
        }
      }
      ++a;
      if constexpr (kRows > 3) ++a3;
      if constexpr (kRows > 6) ++a6;
      if constexpr (kRows > 9) ++a9;
    };
    const int64_t count = shape.WordsOf(b);
    if constexpr (kUnpacks != Unpacks::kNothing) {
      for (int64_t word = 0; word < count; ++word, from += kWordBytes) {
        REPRISE_FETCH_BLOCK_WORDS(from)
        ForPairs<kBits>(from, table, [&](const VU(&pairs)[kBf16Vectors]) HWY_ATTR {
          if constexpr (kUnpacks == Unpacks::kForOthers) {
            HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
              hn::Store(pairs[v], du, words + v * kLanes);
            }
            words += kBf16Panel;
          }
          step(pairs);
        });
      }
    } else {
      from += count * kWordBytes;
      for (int64_t line = 0; line < ahead.step; line += kLine) {
        __builtin_prefetch(ahead.next + line, /*rw=*/0, /*locality=*/2);
      }
      ahead.next += ahead.step;
      for (int64_t left = count * (32 / kBits) / 2; left > 0; --left, words += kBf16Panel) {
        VU pairs[kBf16Vectors];
        HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
          pairs[v] = hn::Load(du, words + v * kLanes);
        }
        step(pairs);
      }
    }
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
      const VF factor = hn::LoadU(d, factors + v * kLanes);
      const VF offset = kOffsets ? hn::LoadU(d, factors + kBf16Panel + v * kLanes) : hn::Zero(d);
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
        VF total = hn::MulAdd(acc[r][v], factor, totals.Get(r, v));
        if constexpr (kOffsets) {
          total = hn::MulAdd(hn::Set(d, sums[r * shape.blocks]), offset, total);
        }
        totals.Set(r, v, total);
      }
    }
  }
  VF total[kRows][kBf16Vectors];
  HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) total[r][v] = totals.Get(r, v);
  }
  FinishSums(total, out);
}

using BlockTileFunction = void (*)(const BlockTileIn&, const TileOut&);
template <int kBits, bool kOffsets, Unpacks kUnpacks, int kLeast, int... kMore>
constexpr std::array<BlockTileFunction, sizeof...(kMore)> BlockTilesOf(
    std::integer_sequence<int, kMore...>) {
  return {BlockTile<kBits, kLeast + kMore, kOffsets, kUnpacks>...};
}
// From kLeast rows on.
template <int kBits, bool kOffsets, Unpacks kUnpacks, int kLeast, int kMost>
constexpr auto kBlockTiles = BlockTilesOf<kBits, kOffsets, kUnpacks, kLeast>(
    std::make_integer_sequence<int, kMost - kLeast + 1>());
// Returns the tiles by rows less kLeast.
template <int kBits, Unpacks kUnpacks, int kLeast, int kMost>
const BlockTileFunction* TilesFor(bool offsets) {
  return offsets ? kBlockTiles<kBits, true, kUnpacks, kLeast, kMost>.data()
                 : kBlockTiles<kBits, false, kUnpacks, kLeast, kMost>.data();
}

int64_t RowsOfRound(const Shape& shape) {
  const int64_t rows = kMaxBytesOfA / (shape.row_words * int64_t{sizeof(float)});
  return std::max<int64_t>(2, rows / kTallest) * kTallest;
}

// Scratch of a part: rounded rows, the sums of their blocks, and a panel.
struct BlockScratch {
  BlockScratch(std::byte* at, int64_t rows, const Shape& shape) {
    const auto take = [&](int64_t words) {
      std::byte* const taken = at == nullptr ? nullptr : at + size;
      size += static_cast<int64_t>(AlignUp(static_cast<size_t>(words) * sizeof(uint32_t)));
      return taken;
    };
    a = reinterpret_cast<float*>(take(rows * shape.row_words));
    sums = reinterpret_cast<float*>(take(shape.factor_rows == 2 ? rows * shape.blocks : 0));
    panel = reinterpret_cast<uint32_t*>(take(rows > kFewRows<8> ? shape.pairs * kBf16Panel : 0));
  }

  int64_t size = 0;
  float* a;
  float* sums;
  uint32_t* panel;
};

int64_t BlockScratchBytes(int64_t m, int64_t k, const BlockForm& form) {
  const Shape shape(form, k);
  return BlockScratch(nullptr, std::min(m, RowsOfRound(shape)), shape).size;
}

template <int kBits>
void PartOfBlocks(const GemmArgs& args, const Shape& shape, const GemmPart& part) {
  const auto* const packed = static_cast<const char*>(args.packed_b);
  const int64_t round = std::min(part.row_end - part.row_begin, RowsOfRound(shape));
  const BlockScratch scratch(static_cast<std::byte*>(args.scratch), round, shape);
  const bool offsets = shape.factor_rows == 2;
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += round) {
    const int64_t end = std::min(begin + round, part.row_end);
    const bool few = end - begin <= kFewRows<kBits>;
    for (int64_t row = begin, i = 0; row < end; ++row, ++i) {
      RoundRowOfBlocks<kBits>(args.a + row * args.lda, shape, scratch.a + i * shape.row_words,
                              offsets ? scratch.sums + i * shape.blocks : nullptr);
    }
    const BlockTileFunction* const tiles =
        few ? TilesFor<kBits, Unpacks::kOnTheWay, 1, kTall>(offsets)
            : TilesFor<kBits, Unpacks::kNothing, 1, kTallest>(offsets);
    // Numbers of 8 bits take so long that the first tile, which has more than kTall rows, makes
    // them meanwhile. Returns its function.
    const auto first_of = [&](int64_t rows) {
      if constexpr (kBits == 8) {
        constexpr int kLeast = kTall + 1;
        if (!few) {
          return TilesFor<kBits, Unpacks::kForOthers, kLeast, kTallest>(offsets)[rows - kLeast];
        }
      }
      return tiles[rows - 1];
    };
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const char* const of_panel = packed + panel * shape.panel_bytes;
      if (kBits == 4 && !few) UnpackPanel<kBits>(of_panel, shape, scratch.panel);
      // The next panel lies after this one; each tile asks for its share.
      const int64_t shares = TilesOf(end - begin, kTallest) * shape.blocks;
      Ahead ahead = {of_panel + shape.panel_bytes, (shape.panel_bytes + shares - 1) / shares};
      for (int64_t row = begin, rows; row < end; row += rows) {
        rows = NextTileRows(end - row, few ? kTall : kTallest);
        const BlockTileFunction tile = row == begin ? first_of(rows) : tiles[rows - 1];
        tile({.a = scratch.a + (row - begin) * shape.row_words,
              .sums = offsets ? scratch.sums + (row - begin) * shape.blocks : nullptr,
              .shape = shape,
              .panel = of_panel,
              .unpacked = scratch.panel,
              .ahead = ahead},
             TileOutOf(args, nullptr, row, panel * kBf16Panel, kBf16Panel));
        ahead.next += ahead.step * shape.blocks;
      }
    }
  }
}

void BlockPart(const GemmArgs& args, const BlockForm& form, const GemmPart& part) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const Shape shape(form, args.k);
  form.bits == 4 ? PartOfBlocks<4>(args, shape, part) : PartOfBlocks<8>(args, shape, part);
}

void PackBlocks(const BlockSource& b, const BlockForm& form, int64_t k, int64_t n, void* packed) {
  const Shape shape(form, k);
  std::memset(packed, 0, static_cast<size_t>(BlockPackedBytes(k, n, form)));
  for (int64_t column = 0; column < n; column += kBf16Panel) {
    const int64_t live = std::min(kBf16Panel, n - column);
    char* to = static_cast<char*>(packed) + column / kBf16Panel * shape.panel_bytes;
    const uint8_t* const numbers = b.numbers + column * b.row_bytes;
    for (int64_t block = 0; block < shape.blocks; ++block) {
      auto* const factors = reinterpret_cast<float*>(to);
      for (int64_t j = 0; j < live; ++j) {
        const int64_t at = (column + j) * shape.blocks + block;
        factors[j] = b.scales[at];
        if (shape.factor_rows < 2) continue;
        const float point = b.points[at];
        factors[kBf16Panel + j] =
            form.offsets ? point : (static_cast<float>(shape.middle) - point) * b.scales[at];
      }
      to += shape.factor_rows * kWordBytes;
      const int64_t end = std::min(k, (block + 1) * shape.block);
      for (int64_t i = block * shape.block; i < end; i += shape.per_word, to += kWordBytes) {
        const int64_t end_of_word = std::min(end, i + shape.per_word);
        auto* const words = reinterpret_cast<uint32_t*>(to);
        for (int64_t j = 0; j < live; ++j) {
          words[j] = WordAt(b, form, numbers + j * b.row_bytes, i, end_of_word);
        }
      }
    }
  }
}

void WidenBlocks(const void* packed, const BlockForm& form, int64_t k, int64_t panel, void* words) {
  const Shape shape(form, k);
  const char* const from = static_cast<const char*>(packed) + panel * shape.panel_bytes;
  auto* const to = static_cast<uint32_t*>(words);
  form.bits == 4 ? WidenPanel<4>(from, shape, to) : WidenPanel<8>(from, shape, to);
}

}  // namespace

constexpr Bf16BlockKernels kBf16BlockKernels = {
    // Unpacking a panel takes as long as half a tile of rows.
    .division = {.panel_columns = kBf16Panel,
                 .vector_columns = kLanes,
                 .tile_rows = kTall,
                 .costs = {.panel = 0.5, .row_tile = 0.25, .shared_tile = 0.25}},
    .packed_bytes = BlockPackedBytes,
    .pack = PackBlocks,
    .scratch_bytes = BlockScratchBytes,
    .part = BlockPart,
    .widen = WidenBlocks};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const Bf16BlockKernels* Bf16BlockKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAvx512Bf16)) return &N_AVX3::kBf16BlockKernels;
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
