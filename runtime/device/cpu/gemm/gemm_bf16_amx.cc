// Products of bfloat16 by the tile unit (AMX) of a CPU.
//
// Weights are packed as the unit reads them, and rows of A are rounded once for all panels. Two row
// tiles times two column tiles are four sums of the unit; while one is waited for, the other three
// are multiplied. Meanwhile the vector units finish the tiles before them.
#include <algorithm>

#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_bf16_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/bf16-inl.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

static_assert(kBf16Panel == 2 * kRowsOfTile && kBf16Depth == kDepth);

// The limit on rounded rows of A, which should stay in the L2 cache with a panel.
constexpr int64_t kMaxBytesOfA = 1 << 20;
constexpr int64_t kRowsAtATime = 2 * kRowsOfTile;
constexpr int64_t kBytesOfSums = kRowsAtATime * kBf16Panel * sizeof(float);

int64_t Blocks(int64_t k) { return (k + kDepth - 1) / kDepth; }
int64_t RowTiles(int64_t m) { return (m + kRowsOfTile - 1) / kRowsOfTile; }
int64_t BytesOfRowTile(int64_t k) { return Blocks(k) * kTileBytes; }
// Even, so that only the last rows of a part are a tile alone.
int64_t MaxRowTiles(int64_t k) {
  return std::max<int64_t>(1, kMaxBytesOfA / std::max<int64_t>(1, BytesOfRowTile(k)) / 2) * 2;
}

// Returns the bytes of A's rows and of two tiles of sums: one is finished, the other computed.
int64_t PartScratchBytes(int64_t m, int64_t k) {
  return 2 * kBytesOfSums + std::min(RowTiles(m), MaxRowTiles(k)) * BytesOfRowTile(k);
}

// Rows [0, rows) of A, at most kRowsOfTile, as tiles: [block][row][kDepth].
void RoundRows(const float* a, int64_t lda, int64_t rows, int64_t k, std::byte* to) {
  const F32 d;
  for (int64_t at = 0; at < k; at += kDepth, to += kTileBytes) {
    const float* HWY_RESTRICT from = a + at;
    auto* HWY_RESTRICT out = reinterpret_cast<float*>(to);
    const bool whole = at + kDepth <= k;
    for (int64_t r = 0; r < rows; ++r, from += lda, out += kLanes) {
      const VF low = whole ? hn::LoadU(d, from) : LoadFirst(d, from, k - at);
      const VF high =
          whole ? hn::LoadU(d, from + kLanes) : LoadFirst(d, from + kLanes, k - at - kLanes);
      hn::Store(RoundPair(low, high), d, out);
    }
  }
}

// Finished sums on their way to C, a few rows at a time.
struct Waiting {
  const float* sums = nullptr;  // [kRowsAtATime][kBf16Panel]
  TileOut out = {};
  int64_t rows = 0;
  int64_t next = 0;

  void FinishTo(int64_t end) {
    end = std::min(end, rows);
    if (next >= end) return;
    WithActivation(out.activation, [&](auto activation) HWY_ATTR { Finish<activation>(end); });
    next = end;
  }

 private:
  template <Activation activation>
  HWY_NOINLINE void Finish(int64_t end) const {
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
      const int64_t live = std::min<int64_t>(out.columns - v * kLanes, kLanes);
      if (live == kLanes) {
        FinishColumns<activation, /*whole=*/true>(end, v * kLanes, live);
      } else if (live > 0) {
        FinishColumns<activation, /*whole=*/false>(end, v * kLanes, live);
      }
    }
  }

  template <Activation activation, bool whole>
  HWY_INLINE void FinishColumns(int64_t end, int64_t column, int64_t live) const {
    const F32 d;
    const auto load = [&](const float* from)
                          HWY_ATTR { return whole ? hn::LoadU(d, from) : LoadPart(d, from, live); };
    const VF scale = out.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, out.scale + column);
    const VF bias = out.bias == nullptr ? hn::Zero(d) : load(out.bias + column);
    for (int64_t r = next; r < end; ++r) {
      VF x = hn::Load(d, sums + r * kBf16Panel + column);
      // Two roundings, as everywhere else.
      if (out.scale != nullptr) x = hn::Mul(x, scale);
      if (out.bias != nullptr) x = hn::Add(x, bias);
      x = Activate(d, x, activation);
      if (out.residual != nullptr) {
        x = hn::Add(x, load(out.residual + r * out.ld_residual + column));
      }
      float* c = out.c + r * out.ldc + column;
      if constexpr (whole) {
        hn::StoreU(x, d, c);
      } else {
        StorePart(x, d, c, live);
      }
    }
  }
};

// Prefetches the next operands, a share at each step, so that they are near when needed.
struct Ahead {
  const std::byte* at;
  int64_t step;  // bytes

  HWY_INLINE void Ask() {
    for (int64_t i = 0; i < step; i += 64) {
      __builtin_prefetch(at + i, /*rw=*/0, /*locality=*/2);
    }
    at += step;
  }
};

constexpr int64_t kStrideOfA = 64;
constexpr int64_t kStrideOfB = kBf16Panel * 4;
constexpr int64_t kBytesOfBlock = 2 * kTileBytes;

// Multiplies kTiles row tiles, 1 or 2: tiles 0 to 3 are the sums, 4 and 5 A's rows, 6 and 7 B's
// columns.
template <int kTiles>
void MultiplyRows(const std::byte* a, const std::byte* a_next, const std::byte* b, int64_t blocks,
                  float* sums, Waiting& waiting, Ahead& ahead) {
  Unit::Zero<0>();
  Unit::Zero<1>();
  if constexpr (kTiles == 2) {
    Unit::Zero<2>();
    Unit::Zero<3>();
  }
  for (int64_t block = 0; block < blocks; ++block) {
    Unit::Load<4>(a, kStrideOfA);
    Unit::Load<6>(b, kStrideOfB);
    Unit::MultiplyHalves<0, 4, 6>();
    Unit::Load<7>(b + 64, kStrideOfB);
    Unit::MultiplyHalves<1, 4, 7>();
    if constexpr (kTiles == 2) {
      Unit::Load<5>(a_next, kStrideOfA);
      Unit::MultiplyHalves<2, 5, 6>();
      Unit::MultiplyHalves<3, 5, 7>();
    }
    a += kTileBytes;
    a_next += kTileBytes;
    b += kBytesOfBlock;
    ahead.Ask();
    waiting.FinishTo(kRowsAtATime * (block + 1) / blocks);
  }
  Unit::Store<0>(sums, kStrideOfB);
  Unit::Store<1>(sums + kLanes, kStrideOfB);
  if constexpr (kTiles == 2) {
    float* const lower = sums + kRowsOfTile * kBf16Panel;
    Unit::Store<2>(lower, kStrideOfB);
    Unit::Store<3>(lower + kLanes, kStrideOfB);
  }
}

void Part(const GemmArgs& args, const float* scales, const GemmPart& part) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const TileConfig config;
  Unit::Configure(config);
  const int64_t blocks = Blocks(args.k);
  const int64_t tiles = RowTiles(part.row_end - part.row_begin);
  // The blocks of rows have one size, because each of them reads all the panels again.
  const int64_t rounds = (tiles + MaxRowTiles(args.k) - 1) / MaxRowTiles(args.k);
  const int64_t rows_of_round = ((tiles + rounds - 1) / rounds + 1) / 2 * kRowsAtATime;
  float* sums = static_cast<float*>(args.scratch);
  float* other_sums = sums + kBytesOfSums / sizeof(float);
  std::byte* const a = static_cast<std::byte*>(args.scratch) + 2 * kBytesOfSums;
  const auto* const packed = static_cast<const std::byte*>(args.packed_b);
  Waiting waiting;
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += rows_of_round) {
    const int64_t end = std::min(begin + rows_of_round, part.row_end);
    for (int64_t row = begin; row < end; row += kRowsOfTile) {
      RoundRows(args.a + row * args.lda, args.lda, std::min(kRowsOfTile, end - row), args.k,
                a + (row - begin) / kRowsOfTile * BytesOfRowTile(args.k));
    }
    const int64_t steps = (end - begin + kRowsAtATime - 1) / kRowsAtATime;
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const std::byte* const b = packed + panel * blocks * kBytesOfBlock;
      // The next panel follows; nothing after the last panel is worth prefetching.
      Ahead ahead = {b + blocks * kBytesOfBlock,
                     panel + 1 < part.panel_end ? (kBytesOfBlock / steps + 63) / 64 * 64 : 0};
      for (int64_t row = begin; row < end; row += kRowsAtATime) {
        const std::byte* const rows = a + (row - begin) / kRowsOfTile * BytesOfRowTile(args.k);
        if (end - row > kRowsOfTile) {
          MultiplyRows<2>(rows, rows + BytesOfRowTile(args.k), b, blocks, sums, waiting, ahead);
        } else {
          MultiplyRows<1>(rows, rows, b, blocks, sums, waiting, ahead);
        }
        waiting.FinishTo(kRowsAtATime);
        waiting = {.sums = sums,
                   .out = TileOutOf(args, scales, row, panel * kBf16Panel, kBf16Panel),
                   .rows = std::min(kRowsAtATime, end - row)};
        std::swap(sums, other_sums);
      }
    }
  }
  waiting.FinishTo(kRowsAtATime);
  Unit::Release();
}

}  // namespace

// The members that the tile unit has of its own: constants, see gemm_amx.cc.
constexpr Bf16Kernels kTileKernels = {.panel_columns = kPanel,
                                      .tile_rows = kRowsAtATime,
                                      .pack = nullptr,
                                      .pack_int8 = nullptr,
                                      .part = Part,
                                      .part_scratch_bytes = PartScratchBytes,
                                      // See GemmCosts. A row of a panel is only read; A's rows are
                                      // rounded in about the time of a product with one panel.
                                      .costs = {.panel = 0.5, .row_tile = 0.7, .shared_tile = 1.2}};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

#if REPRISE_WITH_AVX512
namespace {

// Returns the kernels that share the layout of AVX-512's.
Bf16Kernels TileBf16Kernels() {
  Bf16Kernels kernels = Bf16KernelsFor(Isa::kAvx512);
  const Bf16Kernels& tiles = N_AVX3::kTileKernels;
  kernels.tile_rows = tiles.tile_rows;
  kernels.part = tiles.part;
  kernels.part_scratch_bytes = tiles.part_scratch_bytes;
  kernels.costs = tiles.costs;
  return kernels;
}

}  // namespace
#endif

const Bf16Kernels* TileBf16KernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  static const Bf16Kernels kernels = TileBf16Kernels();
  if (isa.Has(CpuFeature::kAmx)) return &kernels;
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
