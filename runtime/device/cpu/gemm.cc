#include "runtime/device/cpu/gemm.h"

#include <algorithm>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "runtime/device/cpu/math-inl.h"
#include "runtime/device/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// A tile of C lives in registers: 8 x 48 floats are 24 of the 32 vectors of AVX-512, 6 x 16 are 12
// of the 16 of AVX2; the rest hold a row of B and one broadcast element of A.
#if HWY_TARGET == HWY_AVX3
constexpr int kVectors = 3;
constexpr int kTileRows = 8;
#else
constexpr int kVectors = 2;
constexpr int kTileRows = 6;
#endif
constexpr int kLanes = HWY_LANES(float);
constexpr int64_t kPanel = int64_t{kVectors} * kLanes;

// Rows of A that stay in the second-level cache while all panels pass by.
constexpr int64_t kRowBlock = 16 * kTileRows;
// Rows of a panel at a time: counting and moving pointers takes execution slots from the products.
constexpr int kUnroll = HWY_TARGET == HWY_AVX3 ? 2 : 4;
// Longest stretch of k: a panel of it (and its tile rows of A) stays in the second-level cache.
// Beyond it partial sums wait in a buffer on the stack.
constexpr int64_t kDepthBlock = 2048;
// Weights come from afar: a model has many more of them than a core has cache. While the tiles of
// one panel are computed the next panel is asked for, into the second-level cache, a little at each
// step, so that a core computes and fetches at the same time. With fewer tiles than this nothing
// hides the fetching; then every line is asked for, and again, kPrefetchRows ahead of its use, into
// the first-level cache.
constexpr int64_t kFewTiles = 3;
constexpr int64_t kPrefetchRows = 12;

struct Ahead {
  const float* next;  // where to go on
  int64_t step;       // floats to advance at each row of the current panel
};

// Where a tile of C goes.
struct TileOut {
  float* c;
  int64_t ldc;
  const float* bias;
  const float* residual;
  int64_t ld_residual;
  Activation activation;
  int64_t columns;  // Live columns of the panel, 1..kPanel.
  float* partial;   // [kTileRows][kPanel] sums of earlier stretches of k, or null.
  bool first;       // Nothing in `partial` yet.
  bool last;        // Apply the epilogue and write C.
};

HWY_INLINE VF Activate(F32 d, VF v, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return v;
    case Activation::kRelu:
      return Relu(d, v);
    case Activation::kGelu:
      return Gelu(d, v);
    case Activation::kGeluTanh:
      return GeluTanh(d, v);
    case Activation::kTanh:
      return Tanh(d, v);
    case Activation::kSigmoid:
      return Sigmoid(d, v);
    case Activation::kSilu:
      return Silu(d, v);
  }
  return v;
}

// The slow half of the epilogue: a tile that waits in `tile` gets its activation, residual and
// partial columns.
template <Activation activation>
HWY_NOINLINE void FinishTile(const float* HWY_RESTRICT tile, int rows, const TileOut& out) {
  const F32 d;
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t live = std::min<int64_t>(out.columns - v * kLanes, kLanes);
      if (live <= 0) break;
      VF x = Activate(d, hn::Load(d, tile + r * kPanel + v * kLanes), activation);
      float* c = out.c + r * out.ldc + v * kLanes;
      const float* residual =
          out.residual == nullptr ? nullptr : out.residual + r * out.ld_residual + v * kLanes;
      if (live == kLanes) {
        if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual));
        hn::StoreU(x, d, c);
      } else {
        if (residual != nullptr) x = hn::Add(x, LoadPart(d, residual, live));
        StorePart(x, d, c, live);
      }
    }
  }
}

HWY_NOINLINE void FinishTile(const float* tile, int rows, const TileOut& out) {
  switch (out.activation) {
    case Activation::kNone:
      return FinishTile<Activation::kNone>(tile, rows, out);
    case Activation::kRelu:
      return FinishTile<Activation::kRelu>(tile, rows, out);
    case Activation::kGelu:
      return FinishTile<Activation::kGelu>(tile, rows, out);
    case Activation::kGeluTanh:
      return FinishTile<Activation::kGeluTanh>(tile, rows, out);
    case Activation::kTanh:
      return FinishTile<Activation::kTanh>(tile, rows, out);
    case Activation::kSigmoid:
      return FinishTile<Activation::kSigmoid>(tile, rows, out);
    case Activation::kSilu:
      return FinishTile<Activation::kSilu>(tile, rows, out);
  }
}

// How the rows of a panel lie, and how they are asked for; see kFewTiles.
enum class Panel {
  kPacked,     // kPanel floats each, side by side
  kPackedFew,  // so too, with few tiles to hide the fetching
  kInPlace,    // `ldb` floats apart in a row-major B, which only a tile or two read
};

// The compiler keeps `pointer` in a register of its own, in place of computing it from another one
// at each use.
HWY_INLINE const float* Kept(const float* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// sum += a * b, in the register that `sum` has: the compiler's own choice of form and order copies
// accumulators around, which the products wait for.
HWY_INLINE void Accumulate(VF& sum, VF a, VF b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  auto register_of_sum = sum.raw;
  asm("vfmadd231ps %2, %1, %0" : "+v"(register_of_sum) : "v"(a.raw), "v"(b.raw));
  sum.raw = register_of_sum;
#else
  sum = hn::MulAdd(a, b, sum);
#endif
}

// kRows rows of A times the first kVecs vectors of a panel: the inner loop of everything.
template <int kRows, Panel kKind, int kVecs>
HWY_NOINLINE void Tile(const float* HWY_RESTRICT a, int64_t lda, const float* HWY_RESTRICT b,
                       int64_t ldb_in_place, int64_t k, Ahead ahead, const TileOut& out) {
  const F32 d;
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

  // Every third row of A has a pointer; the two behind it are an index away.
  const float* HWY_RESTRICT a3 = kRows > 3 ? Kept(a + 3 * lda) : nullptr;
  const float* HWY_RESTRICT a6 = kRows > 6 ? Kept(a + 6 * lda) : nullptr;
  // Row `u` of those that are next; pointers move once for all of them.
  const auto step = [&](int u) HWY_ATTR {
    const float* HWY_RESTRICT row = b + u * ldb;
    if constexpr (kKind == Panel::kPacked) {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
    } else {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        hwy::Prefetch(row + kPrefetchRows * ldb + v * kLanes);
        if constexpr (kKind == Panel::kPackedFew) {
          __builtin_prefetch(ahead.next + v * kLanes, /*rw=*/0, /*locality=*/2);
        }
      }
    }
    ahead.next += ahead.step;
    VF bv[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) bv[v] = hn::LoadU(d, row + v * kLanes);
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
  int64_t i = 0;
  for (; i + kUnroll <= k; i += kUnroll) {
    HWY_UNROLL(4) for (int u = 0; u < kUnroll; ++u) step(u);
    advance(kUnroll);
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
  const bool whole = out.columns == int64_t{kVecs} * kLanes;
  if (out.bias != nullptr) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const int64_t live = std::min<int64_t>(out.columns - v * kLanes, kLanes);
      const VF bias = live == kLanes ? hn::LoadU(d, out.bias + v * kLanes)
                      : live > 0     ? LoadPart(d, out.bias + v * kLanes, live)
                                     : hn::Zero(d);
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) acc[r][v] = hn::Add(acc[r][v], bias);
    }
  }
  if (whole && out.activation == Activation::kNone) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        VF x = acc[r][v];
        if (out.residual != nullptr) {
          x = hn::Add(x, hn::LoadU(d, out.residual + r * out.ld_residual + v * kLanes));
        }
        hn::StoreU(x, d, out.c + r * out.ldc + v * kLanes);
      }
    }
    return;
  }
  HWY_ALIGN float tile[kRows * kPanel];
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      hn::Store(acc[r][v], d, tile + r * kPanel + v * kLanes);
    }
  }
  FinishTile(tile, kRows, out);
}

using TileFunction = void (*)(const float*, int64_t, const float*, int64_t, int64_t, Ahead,
                              const TileOut&);
template <Panel kKind, int kVecs>
constexpr TileFunction kTilesOf[] = {
    Tile<1, kKind, kVecs>, Tile<2, kKind, kVecs>, Tile<3, kKind, kVecs>,
    Tile<4, kKind, kVecs>, Tile<5, kKind, kVecs>, Tile<6, kKind, kVecs>,
#if HWY_TARGET == HWY_AVX3
    Tile<7, kKind, kVecs>, Tile<8, kKind, kVecs>,
#endif
};

// By rows - 1, for a panel with `columns` live columns.
const TileFunction* TilesFor(bool in_place, bool few, int64_t columns) {
  if (in_place) return kTilesOf<Panel::kInPlace, kVectors>;
  if (columns > (kVectors - 1) * kLanes) {
    return few ? kTilesOf<Panel::kPackedFew, kVectors> : kTilesOf<Panel::kPacked, kVectors>;
  }
  if (columns <= kLanes) return kTilesOf<Panel::kPacked, 1>;
  return kTilesOf<Panel::kPacked, (kVectors > 2 ? 2 : 1)>;
}

// A tile of one or two rows waits for its own sums, so a tail that is a little longer than a tile
// is cut in halves.
constexpr int64_t NextTileRows(int64_t remaining) {
  if (remaining <= kTileRows) return remaining;
  return remaining < kTileRows + 4 ? (remaining + 1) / 2 : kTileRows;
}

// Rows [begin, end) (at most kRowBlock) of one panel, whose rows lie `ldb` apart at `b`; `next` is
// the panel that comes after it, k * kPanel floats side by side.
void PanelRows(const GemmArgs& args, const float* b, int64_t ldb, const float* next, int64_t panel,
               int64_t begin, int64_t end) {
  HWY_ALIGN float partial[kRowBlock * kPanel];
  const bool split = args.k > kDepthBlock;
  const int64_t column = panel * kPanel;
  TileOut out;
  out.ldc = args.ldc;
  out.bias = args.bias == nullptr ? nullptr : args.bias + column;
  out.ld_residual = args.ld_residual;
  out.activation = args.activation;
  out.columns = std::min(kPanel, args.n - column);
  // Each tile asks for its share of the next panel.
  const int64_t tiles = (end - begin + kTileRows - 1) / kTileRows;
  const TileFunction* functions = TilesFor(ldb != kPanel, tiles < kFewTiles, out.columns);
  Ahead ahead = {next, kPanel / tiles};
  int64_t depth = 0;
  do {
    const int64_t depth_end = split ? std::min(depth + kDepthBlock, args.k) : args.k;
    out.first = depth == 0;
    out.last = depth_end == args.k;
    for (int64_t row = begin, rows; row < end; row += rows) {
      rows = NextTileRows(end - row);
      out.c = args.c + row * args.ldc + column;
      out.residual =
          args.residual == nullptr ? nullptr : args.residual + row * args.ld_residual + column;
      out.partial = split ? partial + (row - begin) * kPanel : nullptr;
      functions[rows - 1](args.a + row * args.lda + depth, args.lda, b + depth * ldb, ldb,
                          depth_end - depth, ahead, out);
      ahead.next += ahead.step * (depth_end - depth);
    }
    depth = depth_end;
  } while (depth < args.k);
}

void Part(const GemmArgs& args, const GemmPart& part) {
  const float* packed = static_cast<const float*>(args.packed_b);
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRowBlock) {
    const int64_t end = std::min(begin + kRowBlock, part.row_end);
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const bool last = panel + 1 == part.panel_end;
      const int64_t next = last ? part.panel_begin : panel + 1;
      PanelRows(args, packed + panel * kPanel * args.k, kPanel, packed + next * kPanel * args.k,
                panel, begin, end);
    }
  }
}

// One panel of B into `packed` ([k, kPanel], zeros behind the last column).
void PackPanel(const GemmSource& b, int64_t k, int64_t n, int64_t panel, float scale,
               float* HWY_RESTRICT packed) {
  const F32 d;
  const VF scales = hn::Set(d, scale);
  const int64_t first = panel * kPanel;
  if (!b.transposed && first + kPanel <= n) {
    // One pass: a row of the panel is a few neighbouring lines.
    const float* HWY_RESTRICT from = b.data + first;
    for (int64_t i = 0; i < k; ++i, from += b.ld, packed += kPanel) {
      HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
        hn::Store(hn::Mul(scales, hn::LoadU(d, from + v * kLanes)), d, packed + v * kLanes);
      }
    }
    return;
  }
  for (int v = 0; v < kVectors; ++v, packed += kLanes) {
    const int64_t column = first + v * kLanes;
    const int64_t live = std::clamp<int64_t>(n - column, 0, kLanes);
    const VF live_scales = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(live)), scales);
    if (live == 0) {
      for (int64_t i = 0; i < k; ++i) hn::Store(hn::Zero(d), d, packed + i * kPanel);
    } else if (b.transposed) {
      // Columns behind the last one repeat it, times 0.
      const float* rows[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        rows[i] = b.data + (column + std::min(i, live - 1)) * b.ld;
      }
      TransposeRows(d, rows, k, live_scales, packed, kPanel);
    } else {
      for (int64_t i = 0; i < k; ++i) {
        const VF row = LoadPart(d, b.data + i * b.ld + column, live);
        hn::Store(hn::Mul(live_scales, row), d, packed + i * kPanel);
      }
    }
  }
}

void Pack(const GemmSource& b, int64_t k, int64_t n, float scale, float* packed) {
  for (int64_t panel = 0; panel * kPanel < n; ++panel) {
    PackPanel(b, k, n, panel, scale, packed + panel * kPanel * k);
  }
}

void Unpacked(const UnpackedGemmArgs& args, const GemmPart& part) {
  const GemmArgs& gemm = args.gemm;
  for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
    const int64_t column = panel * kPanel;
    // For few rows a whole panel of a row-major B is read where it lies. For more, a panel side by
    // side pays: rows a power of two apart share few sets of the cache.
    const bool direct = !args.b.transposed && column + kPanel <= gemm.n &&
                        part.row_end - part.row_begin <= kTileRows;
    if (!direct) PackPanel(args.b, gemm.k, gemm.n, panel, 1.0f, args.scratch);
    const float* b = direct ? args.b.data + column : args.scratch;
    const int64_t ldb = direct ? args.b.ld : kPanel;
    for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRowBlock) {
      PanelRows(gemm, b, ldb, b, panel, begin, std::min(begin + kRowBlock, part.row_end));
    }
  }
}

}  // namespace

constexpr GemmKernels kGemmKernels = {kPanel, kTileRows, Pack, Part, Unpacked};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const GemmKernels& GemmKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kGemmKernels); }

GemmPart GemmKernels::Partition(int64_t m, int64_t n, int64_t k, int parts, int part) const {
  const int64_t panels = Panels(n);
  const int64_t tiles = (m + tile_rows - 1) / tile_rows;
  int best_rows = 1;
  int best_panels = parts;
  double best = -1;
  for (int rows = 1; rows <= parts; ++rows) {
    const int columns = parts / rows;
    const int64_t part_tiles = (tiles + rows - 1) / rows;
    const int64_t part_panels = (panels + columns - 1) / columns;
    // In units of one multiplication of a tile with a row of a panel: a tile costs 1; a row of the
    // weights that comes from far costs about 2 tiles, once for each part that reads it; a row of A
    // costs less, but is read by each column of parts.
    const double cost = static_cast<double>(part_tiles) * part_panels + 2.0 * part_panels +
                        0.25 * static_cast<double>(part_tiles);
    if (best < 0 || cost < best) {
      best = cost;
      best_rows = rows;
      best_panels = columns;
    }
  }
  const int row_index = part / best_panels;
  const int panel_index = part % best_panels;
  if (row_index >= best_rows) return {};
  GemmPart result;
  result.row_begin = std::min(m, tiles * row_index / best_rows * tile_rows);
  result.row_end = std::min(m, tiles * (row_index + 1) / best_rows * tile_rows);
  result.panel_begin = panels * panel_index / best_panels;
  result.panel_end = panels * (panel_index + 1) / best_panels;
  return result;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
