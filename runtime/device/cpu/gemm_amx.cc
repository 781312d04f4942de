// Products by the tile unit (AMX) of a CPU, exact to float32.
//
// Floats are three bfloat16 numbers each and take six products (tile_unit-inl.h). An int8 is one
// such number: weights stored so need three products, which are all that there is.
//
// A tile of 16 by 48 sums stays in the unit for all of k, and each row of it is its own, so that
// neither other rows nor a division of the work change a bit. While the unit works on one tile the
// vector units finish the one before it and make the next weights.
#include <algorithm>
#include <utility>

#include "runtime/device/cpu/gemm.h"
#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm_epilogue-inl.h"
#include "runtime/device/cpu/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// The parts of A's rows should stay in the second-level cache, beside those of a stretch of a
// panel.
constexpr int64_t kMaxBytesOfA = 5 << 18;
// The longest stretch of a panel, in blocks, by the element: one of int8 stays in the first-level
// cache.
template <class Element>
constexpr int64_t kMaxBlocks = sizeof(Element) == 1 ? 4 : 12;

int64_t Blocks(int64_t k) { return (k + kDepth - 1) / kDepth; }
int64_t RowTiles(int64_t m) { return (m + kRowsOfTile - 1) / kRowsOfTile; }
int64_t BytesOfRowTile(int64_t k) { return Blocks(k) * kParts * kTileBytes; }
int64_t MaxRowTiles(int64_t k) {
  return std::max<int64_t>(1, kMaxBytesOfA / std::max<int64_t>(1, BytesOfRowTile(k)));
}
constexpr int64_t kBytesOfSums = kRowsOfTile * kPanel * sizeof(float);

// A's rows and their sums, and a stretch of a panel; of floats also the one after it.
int64_t PartScratchBytes(int64_t m, int64_t k, bool int8) {
  const int64_t tiles = std::min(RowTiles(m), MaxRowTiles(k));
  const int64_t most = int8 ? kMaxBlocks<int8_t> : kMaxBlocks<float>;
  return tiles * (BytesOfRowTile(k) + kBytesOfSums) +
         std::min(Blocks(k), most) * (int8 ? 1 : 2 * kParts) * kVectors * kTileBytes;
}

// Rows [0, rows) of A, at most kRowsOfTile, as tiles: [block][part][row][kDepth]. Block by block: a
// row at a time would write lines that all want the same few sets of the first-level cache.
void SplitRows(const float* a, int64_t lda, int64_t rows, int64_t k, std::byte* to) {
  const F32 d;
  const Bits du;
  for (int64_t at = 0; at < k; at += kDepth, to += kParts * kTileBytes) {
    const float* HWY_RESTRICT from = a + at;
    auto* HWY_RESTRICT out = reinterpret_cast<uint32_t*>(to);
    const bool whole = at + kDepth <= k;
    for (int64_t r = 0; r < rows; ++r, from += lda, out += kLanes) {
      const VF low_in = whole ? hn::LoadU(d, from) : LoadFirst(d, from, k - at);
      const VF high_in =
          whole ? hn::LoadU(d, from + kLanes) : LoadFirst(d, from + kLanes, k - at - kLanes);
      const Split low = SplitFloat(low_in);
      const Split high = SplitFloat(high_in);
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

// The next kDepth of `rows` rows of a packed panel as tiles: [part][16 columns][kDepth / 2 pairs of
// rows]; an int8 has one part.
template <class Element>
constexpr int64_t kBytesOfBlock = (sizeof(Element) == 1 ? 1 : kParts) * kVectors* kTileBytes;
template <class Element>
HWY_NOINLINE void SplitBlock(const Element* HWY_RESTRICT b, int64_t rows, std::byte* to) {
  const F32 d;
  const Bits du;
  const VF zero = hn::Zero(d);
  auto* HWY_RESTRICT out = reinterpret_cast<uint32_t*>(to);
  for (int64_t i = 0; i < std::min(rows, kDepth / 2); ++i, out += kLanes, b += kPanel) {
    const bool has_high = i + kDepth / 2 < rows;
    const Element* HWY_RESTRICT b_high = has_high ? b + kDepth / 2 * kPanel : b;
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
      const VF low = LoadWeights(d, b + v * kLanes);
      const VF high = has_high ? LoadWeights(d, b_high + v * kLanes) : zero;
      uint32_t* HWY_RESTRICT tile = out + v * (kTileBytes / 4);
      if constexpr (sizeof(Element) == 1) {
        hn::Store(Pair(low, high), du, tile);
      } else {
        const Split low_parts = SplitFloat(low), high_parts = SplitFloat(high);
        HWY_UNROLL(3) for (int p = 0; p < kParts; ++p) {
          hn::Store(Pair(low_parts.parts[p], high_parts.parts[p]), du,
                    tile + p * kVectors * (kTileBytes / 4));
        }
      }
    }
  }
  for (int64_t i = rows; i < kDepth / 2; ++i, out += kLanes) {
    for (int64_t tile = 0; tile < kBytesOfBlock<Element> / kTileBytes; ++tile) {
      hn::Store(hn::Zero(du), du, out + tile * (kTileBytes / 4));
    }
  }
}

// A stretch of a panel on its way to tiles, a few blocks at a time.
template <class Element>
struct Making {
  const Element* from = nullptr;  // [rows][kPanel]
  int64_t rows = 0;
  std::byte* to = nullptr;
  int64_t next = 0;

  // Floats cost so much that they are made while the unit works. Of int8 there is little to hide,
  // and one stretch fits into the first-level cache where two do not.
  static constexpr bool kAhead = sizeof(Element) != 1;

  int64_t asked = 0;  // bytes

  // Asks for the bytes before `end`, so that they are near when they are needed.
  void AskTo(int64_t end) {
    for (; asked < end; asked += 64) {
      __builtin_prefetch(reinterpret_cast<const std::byte*>(from) + asked, /*rw=*/0,
                         /*locality=*/2);
    }
  }
  int64_t blocks() const { return Blocks(rows); }
  void MakeTo(int64_t end) {
    for (; next < end; ++next) {
      SplitBlock(from + next * kDepth * kPanel, rows - next * kDepth,
                 to + next * kBytesOfBlock<Element>);
    }
  }
};

// A finished tile of sums on its way to C, a few rows at a time.
struct Waiting {
  const float* sums = nullptr;  // [kRowsOfTile][kPanel]
  TileOut out = {};
  int64_t rows = 0;
  int64_t next = 0;

  void FinishTo(int64_t end) {
    end = std::min(end, rows);
    if (next >= end) return;
    if (out.columns < kPanel) {
      FinishNarrow(end);
    } else {
      FinishRows(end);
    }
    next = end;
  }

 private:
  // One pass from the sums to C.
  template <Activation activation>
  HWY_NOINLINE void FinishWhole(int64_t end) const {
    const F32 d;
    VF scale[kVectors], bias[kVectors];
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
      scale[v] = out.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, out.scale + v * kLanes);
      bias[v] = out.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, out.bias + v * kLanes);
    }
    const float* HWY_RESTRICT from = sums + next * kPanel;
    float* c = out.c + next * out.ldc;
    const float* residual =
        out.residual == nullptr ? nullptr : out.residual + next * out.ld_residual;
    for (int64_t r = next; r < end; ++r, from += kPanel, c += out.ldc) {
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
        // Two roundings, as everywhere else.
        VF x = hn::Add(hn::Mul(hn::Load(d, from + v * kLanes), scale[v]), bias[v]);
        x = Activate(d, x, activation);
        if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual + v * kLanes));
        hn::StoreU(x, d, c + v * kLanes);
      }
      if (residual != nullptr) residual += out.ld_residual;
    }
  }
  void FinishRows(int64_t end) const {
    switch (out.activation) {
      case Activation::kNone:
        return FinishWhole<Activation::kNone>(end);
      case Activation::kRelu:
        return FinishWhole<Activation::kRelu>(end);
      case Activation::kGelu:
        return FinishWhole<Activation::kGelu>(end);
      case Activation::kGeluTanh:
        return FinishWhole<Activation::kGeluTanh>(end);
      case Activation::kTanh:
        return FinishWhole<Activation::kTanh>(end);
      case Activation::kSigmoid:
        return FinishWhole<Activation::kSigmoid>(end);
      case Activation::kSilu:
        return FinishWhole<Activation::kSilu>(end);
    }
  }
  // The last panel, where it is not whole.
  HWY_NOINLINE void FinishNarrow(int64_t end) const {
    const F32 d;
    HWY_ALIGN float tile[kRowsOfTile * kPanel];
    for (int v = 0; v < kVectors; ++v) {
      const int64_t live = out.columns - v * kLanes;
      const VF scale =
          out.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, out.scale + v * kLanes);
      const VF bias = out.bias == nullptr ? hn::Zero(d) : LoadFirst(d, out.bias + v * kLanes, live);
      for (int64_t r = next; r < end; ++r) {
        const VF x = hn::Load(d, sums + r * kPanel + v * kLanes);
        hn::Store(hn::Add(hn::Mul(x, scale), bias), d, tile + (r - next) * kPanel + v * kLanes);
      }
    }
    TileOut rows_out = out;
    rows_out.c += next * out.ldc;
    if (out.residual != nullptr) rows_out.residual += next * out.ld_residual;
    FinishTile(tile, static_cast<int>(end - next), rows_out);
  }
};

// Tiles 0 to 2 are the sums, 3 to 5 a part of B, 6 and 7 parts of A.
#define REPRISE_LOAD_B(offset)          \
  "tileloadd " #offset                  \
  "(%[b],%[stride],1), %%tmm3\n\t"      \
  "tileloadd " #offset                  \
  "+1024(%[b],%[stride],1), %%tmm4\n\t" \
  "tileloadd " #offset "+2048(%[b],%[stride],1), %%tmm5\n\t"
#define REPRISE_LOAD_A(offset, tile) "tileloadd " #offset "(%[a],%[stride],1), %%tmm" #tile "\n\t"
#define REPRISE_MULTIPLY(tile)    \
  "tdpbf16ps %%tmm3, %%tmm" #tile \
  ", %%tmm0\n\t"                  \
  "tdpbf16ps %%tmm4, %%tmm" #tile \
  ", %%tmm1\n\t"                  \
  "tdpbf16ps %%tmm5, %%tmm" #tile ", %%tmm2\n\t"

// Sums of one row tile and a stretch of one panel, from nothing or from what is in `sums`.
// Meanwhile `waiting` is finished and share `tile` of `tiles` of the next stretch may be made.
template <class Element>
void Multiply(const std::byte* a, const std::byte* b, int64_t blocks, bool first, float* sums,
              Waiting& waiting, Making<Element>& making, int64_t tile, int64_t tiles) {
  constexpr int64_t kStride = 64;
  constexpr int64_t kSumsStride = kPanel * sizeof(float);
  if (first) {
    asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2" ::: "memory");
  } else {
    asm volatile(
        "tileloadd (%[c],%[stride],1), %%tmm0\n\t"
        "tileloadd 64(%[c],%[stride],1), %%tmm1\n\t"
        "tileloadd 128(%[c],%[stride],1), %%tmm2" ::[c] "r"(sums),
        [stride] "r"(kSumsStride)
        : "memory");
  }
  for (int64_t block = 0; block < blocks; ++block) {
    if constexpr (sizeof(Element) == 1) {
      asm volatile(REPRISE_LOAD_B(0)                            //
                   REPRISE_LOAD_A(0, 6) REPRISE_MULTIPLY(6)     //
                   REPRISE_LOAD_A(1024, 7) REPRISE_MULTIPLY(7)  //
                   REPRISE_LOAD_A(2048, 6) REPRISE_MULTIPLY(6)  //
                   ::[a] "r"(a),
                   [b] "r"(b), [stride] "r"(kStride)
                   : "memory");
    } else {
      asm volatile(REPRISE_LOAD_B(0)                                             //
                   REPRISE_LOAD_A(2048, 6) REPRISE_MULTIPLY(6)                   //
                   REPRISE_LOAD_A(1024, 7) REPRISE_MULTIPLY(7)                   //
                   REPRISE_LOAD_A(0, 6) REPRISE_MULTIPLY(6)                      //
                   REPRISE_LOAD_B(3072) REPRISE_MULTIPLY(7) REPRISE_MULTIPLY(6)  //
                   REPRISE_LOAD_B(6144) REPRISE_MULTIPLY(6)                      //
                   ::[a] "r"(a),
                   [b] "r"(b), [stride] "r"(kStride)
                   : "memory");
    }
    b += kBytesOfBlock<Element>;
    a += kParts * kTileBytes;
    waiting.FinishTo(kRowsOfTile * (block + 1) / blocks);
    const int64_t share = tile * blocks + block + 1;
    if constexpr (Making<Element>::kAhead) {
      making.MakeTo(making.blocks() * share / (tiles * blocks));
    } else {
      making.AskTo(making.rows * kPanel * share / (tiles * blocks));
    }
  }
  asm volatile(
      "tilestored %%tmm0, (%[c],%[stride],1)\n\t"
      "tilestored %%tmm1, 64(%[c],%[stride],1)\n\t"
      "tilestored %%tmm2, 128(%[c],%[stride],1)" ::[c] "r"(sums),
      [stride] "r"(kSumsStride)
      : "memory");
}

// Weights of type Element; `scales`: of each column, or null.
template <class Element>
void TilePart(const GemmArgs& args, const GemmPart& part, const Element* packed,
              const float* scales) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const TileConfig config;
  asm volatile("ldtilecfg %0" ::"m"(config));
  const int64_t tiles = RowTiles(part.row_end - part.row_begin);
  // Blocks of rows of one size: each of them makes all the panels again.
  const int64_t rounds = (tiles + MaxRowTiles(args.k) - 1) / MaxRowTiles(args.k);
  const int64_t tiles_of_round = (tiles + rounds - 1) / rounds;
  auto* const a = static_cast<std::byte*>(args.scratch);
  auto* const all_sums = reinterpret_cast<float*>(a + tiles_of_round * BytesOfRowTile(args.k));
  std::byte* b = reinterpret_cast<std::byte*>(all_sums) + tiles_of_round * kBytesOfSums;
  constexpr int64_t kMaxStretch = kMaxBlocks<Element> * kDepth;
  const int64_t longest = std::min(args.k, kMaxStretch);
  std::byte* b_next = Making<Element>::kAhead ? b + Blocks(longest) * kBytesOfBlock<Element> : b;
  const auto rows_of = [&](int64_t panel, int64_t depth) {
    return packed + (panel * args.k + depth) * kPanel;
  };
  Making<Element> making = {rows_of(part.panel_begin, 0), longest, b};
  making.MakeTo(making.blocks());
  Waiting waiting;
  for (int64_t begin = part.row_begin; begin < part.row_end;
       begin += tiles_of_round * kRowsOfTile) {
    const int64_t end = std::min(begin + tiles_of_round * kRowsOfTile, part.row_end);
    const bool last_round = end == part.row_end;
    for (int64_t row = begin; row < end; row += kRowsOfTile) {
      SplitRows(args.a + row * args.lda, args.lda, std::min(kRowsOfTile, end - row), args.k,
                a + (row - begin) / kRowsOfTile * BytesOfRowTile(args.k));
    }
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const int64_t column = panel * kPanel;
      int64_t depth = 0;
      do {
        const int64_t depth_end = std::min(depth + kMaxStretch, args.k);
        // What comes next: of this panel, of the next one, of the first one for other rows.
        if (depth_end < args.k) {
          making = {rows_of(panel, depth_end), std::min(args.k - depth_end, kMaxStretch), b_next};
        } else if (panel + 1 < part.panel_end) {
          making = {rows_of(panel + 1, 0), longest, b_next};
        } else {
          making = {rows_of(part.panel_begin, 0), last_round ? 0 : longest, b_next};
        }
        for (int64_t row = begin; row < end; row += kRowsOfTile) {
          const int64_t tile = (row - begin) / kRowsOfTile;
          float* const sums = all_sums + tile * kRowsOfTile * kPanel;
          Multiply(a + tile * BytesOfRowTile(args.k) + depth / kDepth * kParts * kTileBytes, b,
                   Blocks(depth_end - depth), depth == 0, sums, waiting, making, tile,
                   RowTiles(end - begin));
          waiting.FinishTo(kRowsOfTile);
          if (depth_end < args.k) continue;
          waiting = {.sums = sums, .rows = std::min(kRowsOfTile, end - row)};
          TileOut& out = waiting.out;
          out.c = args.c + row * args.ldc + column;
          out.ldc = args.ldc;
          out.scale = scales == nullptr ? nullptr : scales + column;
          out.bias = args.bias == nullptr ? nullptr : args.bias + column;
          out.residual =
              args.residual == nullptr ? nullptr : args.residual + row * args.ld_residual + column;
          out.ld_residual = args.ld_residual;
          out.activation = args.activation;
          out.columns = std::min(kPanel, args.n - column);
        }
        making.MakeTo(making.blocks());
        std::swap(b, b_next);
        depth = depth_end;
      } while (depth < args.k);
    }
  }
  waiting.FinishTo(kRowsOfTile);
  asm volatile("tilerelease");
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

GemmKernels MakeTileGemmKernels(const GemmKernels& vectors) {
  GemmKernels kernels = vectors;
  kernels.tile_rows = kRowsOfTile;
  kernels.part = Part;
  kernels.part_int8 = Int8Part;
  kernels.part_scratch_bytes = PartScratchBytes;
  // Measured, see GemmCosts: a block of a panel of int8 is made in two thirds of the time of a
  // tile's products with it, floats in 1.3 times theirs, which are twice as many; A's rows in twice
  // the time.
  kernels.costs = {.panel = 1.3, .row_tile = 0.9, .shared_tile = 1.5};
  kernels.int8_costs = {.panel = 0.65, .row_tile = 2.0, .shared_tile = 3.5};
  return kernels;
}

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const GemmKernels* TileGemmKernelsFor(Isa isa) {
  static const GemmKernels kernels = N_AVX3::MakeTileGemmKernels(GemmKernelsFor(Isa::kAvx512));
  return isa >= Isa::kAmx ? &kernels : nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
