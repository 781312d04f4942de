// Products by the tile unit (AMX) of a CPU, exact to float32.
//
// A float is three bfloat16 numbers and takes six products (tile_unit-inl.h). An int8 is one such
// number: int8 weights need three products, and these are exact.
//
// A tile of 16 by 48 sums stays in the unit for a stretch of k, two such tiles where there are two,
// and each row is independent, so that neither other rows nor a division of the work change a bit.
// The unit takes 16 cycles for a product of two tiles. The vector units' work, which is finishing
// the tile before and converting the weights of the next stretch, lies between its instructions in
// small turns: a core looks some hundred instructions ahead, and a whole block of either work would
// fill that window.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_amx-inl.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// The parts of A's rows should stay in the L2 cache, with the parts of a stretch of a
// panel.
constexpr int64_t kMaxBytesOfA = 5 << 18;

// The order in which panels pass over a number of row tiles.
struct Walk {
  // Row tiles at a time: two share each load of a panel.
  int64_t tiles = kHeldTiles;
  // The length of a stretch of a panel, in blocks. It is short where the sums stay in the unit all
  // the way, so that the converted stretch stays in the L1 cache; else it is so long that storing
  // and loading the sums costs little.
  int64_t stretch = 1;
  // Whether the next stretch is converted while the unit multiplies this one.
  bool ahead = true;
};
template <class Element>
constexpr Walk WalkOf(int64_t tiles) {
  if (tiles <= kHeldTiles) return {.stretch = sizeof(Element) == 1 ? 2 : 1};
  // With many row tiles of int8, converting costs the least, and one stretch fits into the L1 cache
  // where two do not.
  if (sizeof(Element) == 1) return {.tiles = 1, .stretch = 4, .ahead = false};
  return {.stretch = 12};
}

int64_t BytesOfRowTile(int64_t k) { return Blocks(k) * kBytesOfA; }
int64_t MaxRowTiles(int64_t k) {
  return std::max<int64_t>(1, kMaxBytesOfA / std::max<int64_t>(1, BytesOfRowTile(k)));
}
constexpr int64_t kBytesOfSums = kRowsOfTile * kPanel * sizeof(float);

template <class Element>
int64_t ScratchBytes(int64_t tiles, int64_t k) {
  return tiles * (BytesOfRowTile(k) + kBytesOfSums) +
         2 * std::min(Blocks(k), WalkOf<Element>(tiles).stretch) * kBytesOfB<Element>;
}

// Returns the bytes of A's rows and their sums, a stretch of a panel and the one after it.
int64_t PartScratchBytes(int64_t m, int64_t k, bool int8) {
  const int64_t tiles = std::min(RowTiles(m), MaxRowTiles(k));
  return int8 ? ScratchBytes<int8_t>(tiles, k) : ScratchBytes<float>(tiles, k);
}

constexpr int64_t kTileStride = 64;
constexpr int64_t kSumsStride = kPanel * sizeof(float);

template <int kTile>
HWY_INLINE void LoadTile(const void* from, int64_t stride = kTileStride) {
  Unit::Load<kTile>(from, stride);
}

// Describes a product of one or two row tiles and a stretch of a panel.
struct Stretch {
  const std::byte* a = nullptr;
  int64_t next_a = 0;  // bytes to the second tile's
  const std::byte* b = nullptr;
  int64_t blocks = 0;
  float* sums = nullptr;  // [tiles][kRowsOfTile][kPanel]
  // The unit's sums begin with 0 (`zero`), with `sums` (`load`), or continue those that it holds.
  bool zero = false, load = false;
  bool store = false;  // whether `sums` receives them
};

// The work of the vector units meanwhile; they take one turn after every three products.
template <class Element>
struct Meanwhile {
  Waiting<Element> waiting;
  Making<Element> making;

  HWY_INLINE void TakeTurn() {
    making.TakeTurn();
    waiting.TakeTurn();
  }
};
template <class Element>
constexpr int64_t kTurnsOfBlock = sizeof(Element) == 1 ? 3 : 6;

// Multiplies one block of a row tile: tiles 0 to 2 are the sums, 3 to 5 part of B, 6 and 7 of A.
template <class Element>
HWY_INLINE void MultiplyBlock(const std::byte* a, const std::byte* b,
                              Meanwhile<Element>& meanwhile) {
  LoadTile<3>(b);
  LoadTile<4>(b + kTileBytes);
  LoadTile<5>(b + 2 * kTileBytes);
  const auto multiply = [&](auto part) HWY_ATTR {
    Unit::MultiplyHalves<0, part, 3>();
    Unit::MultiplyHalves<1, part, 4>();
    Unit::MultiplyHalves<2, part, 5>();
    meanwhile.TakeTurn();
  };
  constexpr std::integral_constant<int, 6> kEven;
  constexpr std::integral_constant<int, 7> kOdd;
  if constexpr (kPartsOf<Element> == 1) {
    LoadTile<6>(a);
    multiply(kEven);
    LoadTile<7>(a + kTileBytes);
    multiply(kOdd);
    LoadTile<6>(a + 2 * kTileBytes);
    multiply(kEven);
  } else {
    LoadTile<6>(a + 2 * kTileBytes);
    multiply(kEven);
    LoadTile<7>(a + kTileBytes);
    multiply(kOdd);
    LoadTile<6>(a);
    multiply(kEven);
    LoadTile<3>(b + 3 * kTileBytes);
    LoadTile<4>(b + 4 * kTileBytes);
    LoadTile<5>(b + 5 * kTileBytes);
    multiply(kOdd);
    multiply(kEven);
    LoadTile<3>(b + 6 * kTileBytes);
    LoadTile<4>(b + 7 * kTileBytes);
    LoadTile<5>(b + 8 * kTileBytes);
    multiply(kEven);
  }
}

// Multiplies 16 columns of two row tiles: tiles kColumn and 3 + kColumn are the sums, 6 is B's and
// 7 A's. Each sum is added in the same order.
template <class Element, int kColumn>
HWY_INLINE void MultiplyColumns(const std::byte* a, const std::byte* a2, const std::byte* b,
                                Meanwhile<Element>& meanwhile) {
  const auto first = [&](int part) HWY_ATTR {
    LoadTile<7>(a + part * kTileBytes);
    Unit::MultiplyHalves<kColumn, 7, 6>();
  };
  const auto second = [&](int part) HWY_ATTR {
    LoadTile<7>(a2 + part * kTileBytes);
    Unit::MultiplyHalves<3 + kColumn, 7, 6>();
  };
  b += kColumn * kTileBytes;
  LoadTile<6>(b);
  if constexpr (kPartsOf<Element> == 1) {
    first(0);
    second(0);
    first(1);
    meanwhile.TakeTurn();
    second(1);
    first(2);
    second(2);
    meanwhile.TakeTurn();
  } else {
    first(2);
    second(2);
    first(1);
    meanwhile.TakeTurn();
    second(1);
    first(0);
    second(0);
    meanwhile.TakeTurn();
    LoadTile<6>(b + 3 * kTileBytes);
    first(1);
    second(1);
    first(0);
    meanwhile.TakeTurn();
    second(0);
    LoadTile<6>(b + 6 * kTileBytes);
    Unit::MultiplyHalves<3 + kColumn, 7, 6>();
    first(0);
    meanwhile.TakeTurn();
  }
}

template <class Element, int kTiles>
HWY_NOINLINE void Multiply(const Stretch& stretch, Meanwhile<Element>& meanwhile) {
  float* const sums = stretch.sums;
  float* const sums2 = sums + kRowsOfTile * kPanel;
  if (stretch.zero) {
    Unit::Zero<0>();
    Unit::Zero<1>();
    Unit::Zero<2>();
    if constexpr (kTiles == 2) {
      Unit::Zero<3>();
      Unit::Zero<4>();
      Unit::Zero<5>();
    }
  } else if (stretch.load) {
    LoadTile<0>(sums, kSumsStride);
    LoadTile<1>(sums + kLanes, kSumsStride);
    LoadTile<2>(sums + 2 * kLanes, kSumsStride);
    if constexpr (kTiles == 2) {
      LoadTile<3>(sums2, kSumsStride);
      LoadTile<4>(sums2 + kLanes, kSumsStride);
      LoadTile<5>(sums2 + 2 * kLanes, kSumsStride);
    }
  }
  const std::byte* a = stretch.a;
  const std::byte* b = stretch.b;
  for (int64_t block = 0; block < stretch.blocks; ++block) {
    if constexpr (kTiles == 2) {
      const std::byte* const a2 = a + stretch.next_a;
      MultiplyColumns<Element, 0>(a, a2, b, meanwhile);
      MultiplyColumns<Element, 1>(a, a2, b, meanwhile);
      MultiplyColumns<Element, 2>(a, a2, b, meanwhile);
    } else {
      MultiplyBlock(a, b, meanwhile);
    }
    a += kBytesOfA;
    b += kBytesOfB<Element>;
  }
  if (!stretch.store) return;
  // The sums that still wait may lie where these are stored.
  meanwhile.waiting.Finish();
  Unit::Store<0>(sums, kSumsStride);
  Unit::Store<1>(sums + kLanes, kSumsStride);
  Unit::Store<2>(sums + 2 * kLanes, kSumsStride);
  if constexpr (kTiles == 2) {
    Unit::Store<3>(sums2, kSumsStride);
    Unit::Store<4>(sums2 + kLanes, kSumsStride);
    Unit::Store<5>(sums2 + 2 * kLanes, kSumsStride);
  }
}

// Computes with weights of type Element; `scales` has one factor per column, or is null.
template <class Element>
void TilePart(const GemmArgs& args, const GemmPart& part, const Element* packed,
              const float* scales) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const TileConfig config;
  Unit::Configure(config);
  const int64_t tiles = RowTiles(part.row_end - part.row_begin);
  // The blocks of rows have one size, because each of them converts all the panels again.
  const int64_t rounds = (tiles + MaxRowTiles(args.k) - 1) / MaxRowTiles(args.k);
  const int64_t tiles_of_round = (tiles + rounds - 1) / rounds;
  const int64_t bytes_of_row_tile = BytesOfRowTile(args.k);
  auto* const a = static_cast<std::byte*>(args.scratch);
  auto* const all_sums = reinterpret_cast<float*>(a + tiles_of_round * bytes_of_row_tile);
  std::byte* b = reinterpret_cast<std::byte*>(all_sums) + tiles_of_round * kBytesOfSums;
  const Walk walk = WalkOf<Element>(tiles_of_round);
  const int64_t longest = std::min(args.k, walk.stretch * kDepth);
  std::byte* b_next = walk.ahead ? b + Blocks(longest) * kBytesOfB<Element> : b;
  const auto panel_at = [&](int64_t panel) { return packed + panel * args.k * kPanel; };
  Meanwhile<Element> meanwhile;
  Making<Element>(panel_at(part.panel_begin), longest, b, 1).Finish();
  for (int64_t begin = part.row_begin; begin < part.row_end;
       begin += tiles_of_round * kRowsOfTile) {
    const int64_t end = std::min(begin + tiles_of_round * kRowsOfTile, part.row_end);
    const int64_t round_tiles = RowTiles(end - begin);
    const bool held = round_tiles <= walk.tiles;
    for (int64_t tile = 0; tile < round_tiles; ++tile) {
      const int64_t row = begin + tile * kRowsOfTile;
      SplitRows(args.a + row * args.lda, args.lda, std::min(kRowsOfTile, end - row), args.k,
                a + tile * bytes_of_row_tile);
    }
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      int64_t depth = 0;
      do {
        const int64_t depth_end = std::min(depth + longest, args.k);
        const bool last = depth_end >= args.k;
        const int64_t blocks = Blocks(depth_end - depth);
        const int64_t turns = std::max<int64_t>(1, blocks * kTurnsOfBlock<Element>);
        const int64_t making_turns = walk.ahead ? round_tiles * turns : 0;
        // The next stretch to convert: of this panel, of the next, or of the first for other rows.
        if (!last) {
          meanwhile.making = {panel_at(panel) + depth_end * kPanel,
                              std::min(args.k - depth_end, longest), b_next, making_turns};
        } else if (panel + 1 < part.panel_end) {
          meanwhile.making = {panel_at(panel + 1), longest, b_next, making_turns};
        } else {
          meanwhile.making = {panel_at(part.panel_begin), end == part.row_end ? 0 : longest, b_next,
                              making_turns};
        }
        for (int64_t tile = 0; tile < round_tiles; tile += walk.tiles) {
          const int64_t count = std::min(walk.tiles, round_tiles - tile);
          float* const sums = all_sums + tile * kRowsOfTile * kPanel;
          const Stretch stretch = {.a = a + tile * bytes_of_row_tile + depth / kDepth * kBytesOfA,
                                   .next_a = bytes_of_row_tile,
                                   .b = b,
                                   .blocks = blocks,
                                   .sums = sums,
                                   .zero = depth == 0,
                                   .load = !held,
                                   .store = last || !held};
          if (count == 2) {
            Multiply<Element, 2>(stretch, meanwhile);
          } else {
            Multiply<Element, 1>(stretch, meanwhile);
          }
          if (!last) continue;
          meanwhile.waiting.Finish();
          const int64_t row = begin + tile * kRowsOfTile;
          const int64_t turns_to_next =
              held && args.k > 0 ? Blocks(args.k) * kTurnsOfBlock<Element> * count : turns;
          meanwhile.waiting = {sums,
                               std::min(count * kRowsOfTile, end - row),
                               TileOutOf(args, scales, row, panel * kPanel, kPanel),
                               args.a + row * args.lda,
                               args,
                               panel_at(panel),
                               turns_to_next};
        }
        meanwhile.making.Finish();
        std::swap(b, b_next);
        depth = depth_end;
      } while (depth < args.k);
    }
  }
  meanwhile.waiting.Finish();
  Unit::Release();
}

void Part(const GemmArgs& args, const GemmPart& part) {
  TilePart(args, part, static_cast<const float*>(args.packed_b), nullptr);
}

void Int8Part(const GemmArgs& args, const GemmPart& part) {
  const int64_t panels = (args.n + kPanel - 1) / kPanel;
  const auto* scales = static_cast<const float*>(args.packed_b);
  TilePart(args, part, reinterpret_cast<const int8_t*>(scales + panels * kPanel), scales);
}

}  // namespace

// The members that the tile unit has of its own. Constants, not a function: that would be compiled
// for AVX-512, and products are planned for CPUs that this one is not.
constexpr GemmKernels kTileKernels = {
    .panel_columns = kPanel,
    .vector_columns = 0,
    .tile_rows = kRowsOfTile,
    .part = Part,
    .part_int8 = Int8Part,
    .part_scratch_bytes = PartScratchBytes,
    // Measured, see GemmCosts. Converting a block of an int8 panel takes two thirds of the time of
    // a tile's products with it, a block of floats 1.3 times the time of theirs, which are twice in
    // number; A's rows take twice the time.
    .costs = {.panel = 1.3, .row_tile = 0.9, .shared_tile = 1.5},
    .int8_costs = {.panel = 0.65, .row_tile = 2.0, .shared_tile = 3.5}};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

#if REPRISE_WITH_AVX512
namespace {

// Returns the kernels that share the layout of AVX-512's, whose others the tile unit lacks.
GemmKernels TileGemmKernels() {
  GemmKernels kernels = GemmKernelsFor(Isa::kAvx512);
  const GemmKernels& tiles = N_AVX3::kTileKernels;
  kernels.tile_rows = tiles.tile_rows;
  kernels.part = tiles.part;
  kernels.part_int8 = tiles.part_int8;
  kernels.part_scratch_bytes = tiles.part_scratch_bytes;
  kernels.costs = tiles.costs;
  kernels.int8_costs = tiles.int8_costs;
  return kernels;
}

}  // namespace
#endif

const GemmKernels* TileGemmKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  static const GemmKernels kernels = TileGemmKernels();
  if (isa.Has(CpuFeature::kAmx)) return &kernels;
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
