// The inner loop of every product: a tile of C in registers, and the tiles of one panel. Included
// inside a kernel file after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_TILE_INL_H_
#undef REPRISE_CPU_GEMM_TILE_INL_H_
#else
#define REPRISE_CPU_GEMM_TILE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/gemm/gemm_stretch-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Rows of a panel at a time: counting and moving pointers takes execution slots from the products.
constexpr int kUnroll = HWY_TARGET == HWY_AVX3 ? 2 : 4;
// The rows of a panel that pass by between two prefetches of the residual.
constexpr int64_t kResidualSteps = 16;
// The layout of the rows of a panel, and how they are prefetched; see kFewTiles.
enum class Panel {
  kPacked,       // kPanel floats each, side by side
  kPackedFew,    // the same, with few tiles to hide the fetching
  kPackedLone,   // the same, with a lone tile
  kPackedAhead,  // the same, each line prefetched once, far ahead, into the L1 cache
  // Whole vectors, `ldb` floats apart in a row-major B, which only a tile or two read.
  kInPlace,
  // Side by side, widened in registers:
  kInt8,      // kPanel int8 each
  kFloat16,   // kPanel float16 each
  kBFloat16,  // kPanel bfloat16 each
};
constexpr bool IsNarrow(Panel kind) {
  return kind == Panel::kInt8 || kind == Panel::kFloat16 || kind == Panel::kBFloat16;
}
// The type of the elements that a panel stores.
template <Panel kKind>
using ElementOf = std::conditional_t<
    kKind == Panel::kInt8, int8_t,
    std::conditional_t<kKind == Panel::kFloat16, hwy::float16_t,
                       std::conditional_t<kKind == Panel::kBFloat16, hwy::bfloat16_t, float>>>;
// A narrow panel streams so fast that only prefetching this many bytes ahead hides the memory.
constexpr int64_t kNarrowNear = 1536;
constexpr int64_t kNarrowFar = 8192;

HWY_INLINE VF LoadRow(F32 d, const float* p) { return hn::LoadU(d, p); }
HWY_INLINE VF LoadRow(F32 d, const int8_t* p) {
  const hn::Rebind<int8_t, F32> d8;
  const hn::Rebind<int32_t, F32> d32;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, p)));
}
template <class Half>
HWY_INLINE VF LoadRow(F32 d, const Half* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<Half, F32>(), p));
}

// kRows rows of A times the first kVecs vectors of a panel: the inner loop of everything.
template <int kRows, Panel kKind, int kVecs>
HWY_NOINLINE void Tile(const float* HWY_RESTRICT a, int64_t lda, const void* panel,
                       int64_t ldb_in_place, int64_t k, Ahead ahead, const TileOut& out) {
  using Element = ElementOf<kKind>;
  const F32 d;
  const Element* HWY_RESTRICT b = static_cast<const Element*>(panel);
  const int64_t ldb = kKind == Panel::kInPlace ? ldb_in_place : kPanel;
  VF acc[kRows][kVecs];
  if (out.partial != nullptr && !out.first) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = hn::Load(d, out.partial + r * kPanel + v * kLanes);
      }
    }
  } else {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
    }
  }

  // Every third row of A has a pointer; the two after it are an index away.
  const float* HWY_RESTRICT a3 = kRows > 3 ? Kept(a + 3 * lda) : nullptr;
  const float* HWY_RESTRICT a6 = kRows > 6 ? Kept(a + 6 * lda) : nullptr;
  // Computes the next row `u`; the pointers move once for all of them.
  const auto step = [&](int u) HWY_ATTR {
    const Element* HWY_RESTRICT row = b + u * ldb;
    if constexpr (kKind == Panel::kPacked) {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
    } else if constexpr (IsNarrow(kKind)) {
      const char* const bytes = reinterpret_cast<const char*>(row);
      constexpr int64_t kBytes = kPanel * int64_t{sizeof(Element)};
      HWY_UNROLL(2) for (int64_t at = FirstLine(u, kBytes); at < kBytes; at += kLine) {
        __builtin_prefetch(bytes + kNarrowNear + at, /*rw=*/0, /*locality=*/3);
        __builtin_prefetch(bytes + kNarrowFar + at, /*rw=*/0, /*locality=*/2);
      }
    } else if constexpr (kKind == Panel::kPackedAhead) {
      const char* const bytes = reinterpret_cast<const char*>(row) + kFarBytes;
      HWY_UNROLL(4) for (int64_t at = FirstLine(u, kRowBytes); at < kRowBytes; at += kLine) {
        __builtin_prefetch(bytes + at, /*rw=*/0, /*locality=*/3);
      }
    } else if constexpr (kKind != Panel::kPackedLone || kRows > kStreamedRows) {
      constexpr int64_t kBytes = int64_t{kVecs} * kLanes * int64_t{sizeof(float)};
      const char* const near = reinterpret_cast<const char*>(row + kNearRows * ldb);
      const int64_t first = kKind == Panel::kInPlace ? 0 : FirstLine(u, kBytes);
      HWY_UNROLL(4) for (int64_t at = first; at < kBytes; at += kLine) {
        __builtin_prefetch(near + at, /*rw=*/0, /*locality=*/3);
        if constexpr (kKind != Panel::kInPlace) {
          __builtin_prefetch(ahead.next + at, /*rw=*/0, /*locality=*/2);
        }
      }
    }
    ahead.next += ahead.step;
    VF bv[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) bv[v] = LoadRow(d, row + v * kLanes);
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      const float* group = r < 3 ? a : r < 6 ? a3 : a6;
      const VF av = hn::Set(d, group[r % 3 * lda + u]);
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) { Accumulate(acc[r][v], av, bv[v]); }
    }
  };
  const auto advance = [&](int64_t rows) HWY_ATTR {
    a += rows;
    if constexpr (kRows > 3) a3 += rows;
    if constexpr (kRows > 6) a6 += rows;
    b += rows * ldb;
  };
  // The residual that is added at the end is prefetched meanwhile, a row every few steps: many rows
  // of it lie far away, and prefetching all at once would delay B. A few rows of a whole panel,
  // which is of another kind, do without.
  const float* residual = kKind == Panel::kPacked && out.last ? out.residual : nullptr;
  int residual_rows = residual != nullptr ? kRows : 0;
  int64_t i = 0;
  while (i + kUnroll <= k) {
    int64_t end = k;
    if (residual_rows > 0) {
      constexpr int64_t kBytes = int64_t{kVecs} * kLanes * int64_t{sizeof(float)};
      HWY_UNROLL(4) for (int64_t at = 0; at < kBytes; at += kLine) {
        __builtin_prefetch(reinterpret_cast<const char*>(residual) + at, /*rw=*/0, /*locality=*/3);
      }
      residual += out.ld_residual;
      --residual_rows;
      end = std::min(k, i + kResidualSteps);
    }
    for (; i + kUnroll <= end; i += kUnroll) {
      HWY_UNROLL(4) for (int u = 0; u < kUnroll; ++u) step(u);
      advance(kUnroll);
    }
  }
  for (; i < k; ++i) {
    step(0);
    advance(1);
  }

  if (!out.last) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        hn::Store(acc[r][v], d, out.partial + r * kPanel + v * kLanes);
      }
    }
    return;
  }
  FinishSums(acc, out);
}

using TileFunction = void (*)(const float*, int64_t, const void*, int64_t, int64_t, Ahead,
                              const TileOut&);
template <Panel kKind, int kVecs, int... kRowsLessOne>
constexpr std::array<TileFunction, sizeof...(kRowsLessOne)> TilesOfRows(
    std::integer_sequence<int, kRowsLessOne...>) {
  return {Tile<kRowsLessOne + 1, kKind, kVecs>...};
}
template <Panel kKind, int kVecs>
constexpr auto kTileFunctions =
    TilesOfRows<kKind, kVecs>(std::make_integer_sequence<int, TileRows(kVecs)>());

// The tiles of a panel.
struct Tiles {
  const TileFunction* functions;  // indexed by rows - 1
  int64_t rows;                   // rows of the tallest
};
template <Panel kKind, int kVecs>
constexpr Tiles kTilesOf = {kTileFunctions<kKind, kVecs>.data(), TileRows(kVecs)};

// Returns the tile functions for `rows` rows and a panel with `columns` live columns.
Tiles TilesFor(bool in_place, GemmBlocking::Near near, int64_t rows, int64_t columns) {
  using Near = GemmBlocking::Near;
  const int64_t tiles = TilesOf(rows);
  constexpr int kTwo = std::min(2, kVectors);
  if (in_place) {
    return columns > 2 * kLanes ? kTilesOf<Panel::kInPlace, kVectors>
           : columns > kLanes   ? kTilesOf<Panel::kInPlace, kTwo>
                                : kTilesOf<Panel::kInPlace, 1>;
  }
  if (columns > (kVectors - 1) * kLanes) {
    const bool few = near == Near::kByRows ? tiles < kFewTiles : near == Near::kYes;
    if (!few) return kTilesOf<Panel::kPacked, kVectors>;
    if (tiles > 1) return kTilesOf<Panel::kPackedFew, kVectors>;
    return near == Near::kByRows && RoomyCache() ? kTilesOf<Panel::kPackedAhead, kVectors>
                                                 : kTilesOf<Panel::kPackedLone, kVectors>;
  }
  if (columns <= kLanes) return kTilesOf<Panel::kPacked, 1>;
  return kTilesOf<Panel::kPacked, (kVectors > 2 ? 2 : 1)>;
}

// Returns how long a stretch of k is for `rows` rows of A in tiles of up to `tile_rows`.
HWY_INLINE int64_t DepthFor(const GemmArgs& args, int64_t rows, int64_t tile_rows = kTileRows) {
  const int64_t asked = args.blocking.depth;
  const int64_t longest = asked > 0 ? asked : rows <= tile_rows ? args.k : StretchRows(rows);
  return EvenStretch(args.k, longest);
}

// Computes rows [begin, end), at least one (at most kMaxSplitRows where k is split), of one panel
// by `tiles`, `depth_block` rows of the panel at a time. `scales` has one for each column of C, or
// is null; `rows_of_b(depth, depth_end)` gives these rows, `ldb` elements apart, and
// `ahead_of(depth, depth_end)` the lines to prefetch meanwhile.
template <class RowsOfB, class AheadOf>
HWY_INLINE void TilesOfPanel(const GemmArgs& args, const float* scales, int64_t panel,
                             int64_t begin, int64_t end, const Tiles& tiles, int64_t ldb,
                             int64_t depth_block, const RowsOfB& rows_of_b,
                             const AheadOf& ahead_of) {
  HWY_ALIGN float partial[kMaxSplitRows * kPanel];
  const bool split = args.k > depth_block;
  // A model's weights have passed since the last replay: it is far away.
  if (args.bias != nullptr) {
    const float* const bias = args.bias + panel * kPanel;
    HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) __builtin_prefetch(bias + v * kLanes);
  }
  TileOut first = TileOutOf(args, scales, begin, panel * kPanel, kPanel);
  first.partial = split ? partial : nullptr;
  int64_t depth = 0;
  do {
    const int64_t depth_end = split ? std::min(depth + depth_block, args.k) : args.k;
    const void* b = rows_of_b(depth, depth_end);
    Ahead ahead = ahead_of(depth, depth_end);
    const float* a = args.a + begin * args.lda + depth;
    TileOut out = first;
    out.first = depth == 0;
    out.last = depth_end == args.k;
    for (int64_t row = begin;;) {
      const int64_t rows = NextTileRows(end - row, tiles.rows);
      tiles.functions[rows - 1](a, args.lda, b, ldb, depth_end - depth, ahead, out);
      row += rows;
      if (row >= end) break;
      a += rows * args.lda;
      out = out.Below(rows);
      ahead.next += ahead.step * (depth_end - depth);
    }
    depth = depth_end;
  } while (depth < args.k);
}

// Computes rows [begin, end) of one panel, whose rows lie `ldb` apart at `b`; `next` is the panel
// after it, k * kPanel floats side by side.
HWY_MAYBE_UNUSED void PanelRows(const GemmArgs& args, const float* b, int64_t ldb,
                                const float* next, int64_t panel, int64_t begin, int64_t end) {
  const int64_t columns = std::min(kPanel, args.n - panel * kPanel);
  const GemmBlocking& blocking = args.blocking;
  const Tiles functions = TilesFor(ldb != kPanel, blocking.near, end - begin, columns);
  const int64_t tiles = TilesOf(end - begin, functions.rows);
  // Each tile prefetches its share.
  const int64_t step = kRowBytes / tiles;
  TilesOfPanel(
      args, nullptr, panel, begin, end, functions, ldb, DepthFor(args, end - begin, functions.rows),
      [&](int64_t depth, int64_t) { return b + depth * ldb; },
      [&](int64_t depth, int64_t depth_end) -> Ahead {
        const char* const rows = reinterpret_cast<const char*>(b);
        const char* const rows_of_next = reinterpret_cast<const char*>(next);
        if (blocking.fetch == GemmBlocking::Fetch::kPanel) {
          return {rows_of_next + depth * kRowBytes, step};
        }
        if (tiles == 1) return {rows + depth * kRowBytes + kFarBytes, step};
        return {depth_end == args.k ? rows_of_next : rows + depth_end * kRowBytes, step};
      });
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
