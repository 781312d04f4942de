#include "runtime/device/cpu/gemm/conv_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/conv_product.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"

#ifndef REPRISE_CPU_CONV_PRODUCT_TILES_
#define REPRISE_CPU_CONV_PRODUCT_TILES_
namespace reprise::cpu {

// See ConvProductKernels::MapOf. A tile of one or two maps waits for its own sums.
inline int64_t MapOfTile(int64_t tile, int64_t maps, int64_t tile_maps) {
  const int64_t tiles = (maps + tile_maps - 1) / tile_maps;
  if (tile >= tiles) return maps;
  const int64_t rest = maps - (tiles - 2) * tile_maps;  // the maps of the last two tiles
  if (tile == 0 || tile + 1 < tiles || rest >= tile_maps + 4) return tile * tile_maps;
  return (tiles - 2) * tile_maps + (rest + 1) / 2;
}

}  // namespace reprise::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int kUnroll = 4;
// Without a panel windows are cut into vectors as a plane has them, not into panels of products,
// and on AVX2 two vectors of 6 maps leave fewer over than three of 4: 128 windows take 0.94 of the
// time.
constexpr int kTapVectors = HWY_TARGET == HWY_AVX3 ? kVectors : 2;
constexpr int kTapMaps = HWY_TARGET == HWY_AVX3 ? kTileRows : 6;

// Finishes the first `kVecs` vectors of a panel; the last one may lie in part after the windows.
template <int kRows, int kVecs>
HWY_INLINE void Finish(const ConvProduct& p, int64_t map, VF (&acc)[kRows][kVecs]) {
  const F32 d;
  constexpr int64_t kLast = (kVecs - 1) * kLanes;
  const int64_t live = p.columns - kLast;
  float* y = p.y + map * p.ld;
  const float* residual = p.residual == nullptr ? nullptr : p.residual + map * p.ld_residual;
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    if (p.last) {
      if (p.bias != nullptr) {
        const VF bias = hn::Set(d, p.bias[map + r]);
        HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Add(acc[r][v], bias);
      }
      if (residual != nullptr) {
        HWY_UNROLL(4) for (int v = 0; v + 1 < kVecs; ++v) {
          acc[r][v] = hn::Add(acc[r][v], hn::LoadU(d, residual + v * kLanes));
        }
        const VF rest =
            live == kLanes ? hn::LoadU(d, residual + kLast) : LoadPart(d, residual + kLast, live);
        acc[r][kVecs - 1] = hn::Add(acc[r][kVecs - 1], rest);
        residual += p.ld_residual;
      }
      if (p.bounded) {
        HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
          acc[r][v] = AtMost(d, AtLeast(d, acc[r][v], p.low), p.high);
        }
      }
    }
    HWY_UNROLL(4) for (int v = 0; v + 1 < kVecs; ++v) hn::StoreU(acc[r][v], d, y + v * kLanes);
    if (live == kLanes) {
      hn::StoreU(acc[r][kVecs - 1], d, y + kLast);
    } else {
      StorePart(acc[r][kVecs - 1], d, y + kLast, live);
    }
    y += p.ld;
  }
}

// Where the rows of the right side are.
enum class Source {
  kPanel,
  kInPlace,  // the panel is made of these rows
  kTaps,     // each row is read for itself
};

// Computes kRows maps from `map` on, whose packed weights are at `weights`: a tile, or two tiles
// of kPacked maps.
template <int kRows, int kVecs, Source kSource, int kPacked = kRows>
HWY_NOINLINE void Tile(const ConvProduct& p, int64_t map, const float* HWY_RESTRICT weights) {
  const F32 d;
  constexpr int64_t kLast = (kVecs - 1) * kLanes;
  const int64_t live = p.columns - kLast;
  const auto mask = hn::FirstN(d, static_cast<size_t>(live));
  VF acc[kRows][kVecs];
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const float* at = p.y + (map + r) * p.ld + v * kLanes;
      acc[r][v] = p.first                           ? hn::Zero(d)
                  : v + 1 == kVecs && live < kLanes ? LoadPart(d, at, live)
                                                    : hn::LoadU(d, at);
    }
  }
  const float* HWY_RESTRICT second = kRows > kPacked ? Kept(weights + kPacked * p.depth) : nullptr;
  const float* HWY_RESTRICT from = p.in_place;
  float* HWY_RESTRICT panel = p.panel;
  const int32_t* HWY_RESTRICT taps = p.taps;
  const auto step = [&](int u) HWY_ATTR {
    VF b[kVecs];
    if constexpr (kSource == Source::kTaps) {
      const float* HWY_RESTRICT row = from + taps[u];
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) b[v] = hn::LoadU(d, row + v * kLanes);
    } else if constexpr (kSource == Source::kInPlace) {
      // The next panel lies after this one.
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        __builtin_prefetch(from + kPanel + v * kLanes, /*rw=*/0, /*locality=*/2);
      }
      HWY_UNROLL(4) for (int v = 0; v + 1 < kVecs; ++v) b[v] = hn::LoadU(d, from + v * kLanes);
      b[kVecs - 1] = hn::MaskedLoad(mask, d, from + kLast);
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        hn::Store(b[v], d, panel + u * kPanel + v * kLanes);
      }
      from += p.ld_in_place;
    } else {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        b[v] = hn::Load(d, panel + u * kPanel + v * kLanes);
      }
    }
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      const float* const of = r < kPacked ? weights : second;
      const VF w = hn::Set(d, of[u * kPacked + r % kPacked]);
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) Accumulate(acc[r][v], w, b[v]);
    }
  };
  const int64_t depth = p.end_k - p.begin_k;
  int64_t k = 0;
  for (; k + kUnroll <= depth; k += kUnroll) {
    HWY_UNROLL(4) for (int u = 0; u < kUnroll; ++u) step(u);
    weights += kUnroll * kPacked;
    if constexpr (kRows > kPacked) second += kUnroll * kPacked;
    if constexpr (kSource == Source::kTaps) {
      taps += kUnroll;
    } else {
      panel += kUnroll * kPanel;
    }
  }
  for (; k < depth; ++k) {
    step(0);
    weights += kPacked;
    if constexpr (kRows > kPacked) second += kPacked;
    if constexpr (kSource == Source::kTaps) {
      ++taps;
    } else {
      panel += kPanel;
    }
  }
  Finish<kRows, kVecs>(p, map, acc);
}

using TileFunction = void (*)(const ConvProduct&, int64_t, const float*);
template <int kVecs, Source kSource, int... kRowsLessOne>
constexpr std::array<TileFunction, sizeof...(kRowsLessOne)> TilesOfMaps(
    std::integer_sequence<int, kRowsLessOne...>) {
  return {Tile<kRowsLessOne + 1, kVecs, kSource>...};
}
// By maps - 1.
template <int kVecs, Source kSource>
constexpr auto kTilesOf = TilesOfMaps<kVecs, kSource>(
    std::make_integer_sequence<int, kSource == Source::kTaps ? kTapMaps : kTileRows>());

template <Source kSource>
HWY_INLINE const TileFunction* TilesFor(int64_t columns) {
  constexpr int kMostVectors = kSource == Source::kTaps ? kTapVectors : kVectors;
  if (columns <= kLanes) return kTilesOf<1, kSource>.data();
  return columns <= 2 * kLanes ? kTilesOf<2, kSource>.data()
                               : kTilesOf<kMostVectors, kSource>.data();
}

// Runs tiles [begin, end) of `kTileMaps` maps, the first of them by `first`, the others by `rest`.
template <int kTileMaps>
HWY_INLINE void MultiplyBy(const TileFunction* first, const TileFunction* rest,
                           const ConvProduct& p, int64_t begin, int64_t end) {
  int64_t map = MapOfTile(begin, p.maps, kTileMaps);
  const TileFunction* tiles = first;
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t next = MapOfTile(tile + 1, p.maps, kTileMaps), rows = next - map;
    tiles[rows - 1](p, map, p.weights + map * p.depth + p.begin_k * rows);
    tiles = rest;
    map = next;
  }
}

// A vector of windows by low tiles of maps waits for its own sums: they go two at a time.
template <Source kSource>
constexpr TileFunction kPairOf = Tile<2 * kTileRows, 1, kSource, kTileRows>;

void MultiplyPanels(const ConvProduct& p, int64_t begin, int64_t end) {
  const TileFunction* const tiles = TilesFor<Source::kPanel>(p.columns);
  const TileFunction* first = p.in_place == nullptr ? tiles : TilesFor<Source::kInPlace>(p.columns);
  if constexpr (kTileRows < 8) {
    TileFunction pair = p.in_place == nullptr ? kPairOf<Source::kPanel> : kPairOf<Source::kInPlace>;
    while (p.columns <= kLanes && begin + 2 <= end) {
      const int64_t map = MapOfTile(begin, p.maps, kTileRows);
      if (MapOfTile(begin + 2, p.maps, kTileRows) != map + 2 * kTileRows) break;
      pair(p, map, p.weights + map * p.depth + p.begin_k * kTileRows);
      pair = kPairOf<Source::kPanel>;
      first = tiles;
      begin += 2;
    }
  }
  MultiplyBy<kTileRows>(first, tiles, p, begin, end);
}

void MultiplyTaps(const ConvProduct& p, int64_t begin, int64_t end) {
  const TileFunction* const tiles = TilesFor<Source::kTaps>(p.columns);
  MultiplyBy<kTapMaps>(tiles, tiles, p, begin, end);
}

template <int kTileMaps>
void Pack(const float* weights, int64_t maps, int64_t depth, float* packed) {
  for (int64_t tile = 0, map = 0; map < maps; ++tile) {
    const int64_t next = MapOfTile(tile + 1, maps, kTileMaps);
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t row = map; row < next; ++row) *packed++ = weights[row * depth + k];
    }
    map = next;
  }
}

}  // namespace

constexpr ConvProductKernels kConvProductKernels = {kTileRows, kPanel, kLanes, Pack<kTileRows>,
                                                    MultiplyPanels};
constexpr ConvProductKernels kConvTapKernels = {kTapMaps, kTapVectors* kLanes, kLanes,
                                                Pack<kTapMaps>, MultiplyTaps};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ConvProductKernels& ConvProductKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kConvProductKernels);
}

const ConvProductKernels& ConvTapKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kConvTapKernels);
}

int64_t ConvProductKernels::NextColumns(int64_t rest) const {
  const bool lone = rest > panel_columns && rest <= panel_columns + vector_columns;
  return std::min(rest,
                  lone && panel_columns > 2 * vector_columns ? 2 * vector_columns : panel_columns);
}

int64_t ConvProductKernels::MapOf(int64_t tile, int64_t maps) const {
  return MapOfTile(tile, maps, tile_maps);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
