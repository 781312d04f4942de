#include "runtime/device/cpu/gemm/gemm.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/device/cpu/simd/parts.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_tile-inl.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Rows of A at a time.
int64_t RowBlock(const GemmArgs& args) {
  const int64_t rows = args.blocking.row_tiles * kTileRows;
  return args.k > DepthFor(args, rows) ? std::min(rows, kMaxSplitRows) : rows;
}

void Part(const GemmArgs& args, const GemmPart& part) {
  const float* packed = static_cast<const float*>(args.packed_b);
  const int64_t row_block = RowBlock(args);
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += row_block) {
    const int64_t end = std::min(begin + row_block, part.row_end);
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      // After the last one of all lie the weights of another product.
      const bool again = panel + 1 == part.panel_end && end < part.row_end;
      const int64_t next = again ? part.panel_begin : panel + 1;
      PanelRows(args, packed + panel * kPanel * args.k, kPanel, packed + next * kPanel * args.k,
                panel, begin, end);
    }
  }
}

// Packs one panel of B into `packed` ([k, kPanel], zeros after the last column).
void PackPanel(const GemmSource& b, int64_t k, int64_t n, int64_t panel, float scale,
               float* HWY_RESTRICT packed) {
  const F32 d;
  const VF scales = hn::Set(d, scale);
  const int64_t first = panel * kPanel;
  // One pass: a row of the panel is a few neighbouring lines.
  const auto whole_vectors = [&]<int kWhole>(std::integral_constant<int, kWhole>) HWY_ATTR {
    const float* HWY_RESTRICT from = b.data + first;
    for (int64_t i = 0; i < k; ++i, from += b.ld, packed += kPanel) {
      HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
        const VF row = v < kWhole ? hn::Mul(scales, hn::LoadU(d, from + v * kLanes)) : hn::Zero(d);
        hn::Store(row, d, packed + v * kLanes);
      }
    }
  };
  if (!b.transposed && first + kPanel <= n) {
    return whole_vectors(std::integral_constant<int, kVectors>());
  }
  if (!b.transposed && n - first == kLanes) {
    return whole_vectors(std::integral_constant<int, 1>());
  }
  if (!b.transposed && n - first == 2 * kLanes) {
    return whole_vectors(std::integral_constant<int, 2>());
  }
  for (int v = 0; v < kVectors; ++v, packed += kLanes) {
    const int64_t column = first + v * kLanes;
    const int64_t live = std::clamp<int64_t>(n - column, 0, kLanes);
    const VF live_scales = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(live)), scales);
    if (live == 0) {
      for (int64_t i = 0; i < k; ++i) hn::Store(hn::Zero(d), d, packed + i * kPanel);
    } else if (b.transposed) {
      // Columns after the last one repeat it, times 0.
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

// Rows [begin, end) of a panel of int8 or halves, widened in registers, or once for many tiles.
template <Panel kKind>
void NarrowPanelRows(const GemmArgs& args, const float* scales, const ElementOf<kKind>* b,
                     const ElementOf<kKind>* next, int64_t panel, int64_t begin, int64_t end) {
  using Element = ElementOf<kKind>;
  if (end - begin <= args.blocking.narrow_tiles * kTileRows) {
    return TilesOfPanel(
        args, scales, panel, begin, end, kTilesOf<kKind, kVectors>, kPanel,
        std::max<int64_t>(args.k, 1), [&](int64_t depth, int64_t) { return b + depth * kPanel; },
        [](int64_t, int64_t) {
          return Ahead{nullptr, 0};
        });
  }
  const F32 d;
  HWY_ALIGN float widened[kLongestStretchBytes / sizeof(float)];
  TilesOfPanel(
      args, scales, panel, begin, end, kTilesOf<Panel::kPacked, kVectors>, kPanel,
      EvenStretch(args.k, StretchRows(end - begin)),
      [&](int64_t depth, int64_t depth_end) HWY_ATTR {
        const Element* HWY_RESTRICT from = b + depth * kPanel;
        for (int64_t i = 0; i < (depth_end - depth) * kPanel; i += kLanes) {
          hn::Store(LoadRow(d, from + i), d, widened + i);
        }
        return widened;
      },
      [&](int64_t depth, int64_t) -> Ahead {
        return {reinterpret_cast<const char*>(next + depth * kPanel),
                kPanel * int64_t{sizeof(Element)} / TilesOf(end - begin)};
      });
}

template <Panel kKind>
void NarrowPart(const GemmArgs& args, const float* scales, const ElementOf<kKind>* packed,
                const GemmPart& part) {
  const int64_t row_block = RowBlock(args);
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += row_block) {
    const int64_t end = std::min(begin + row_block, part.row_end);
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const bool last = panel + 1 == part.panel_end;
      const int64_t next = last ? part.panel_begin : panel + 1;
      NarrowPanelRows<kKind>(args, scales, packed + panel * kPanel * args.k,
                             packed + next * kPanel * args.k, panel, begin, end);
    }
  }
}

void Int8Part(const GemmArgs& args, const GemmPart& part) {
  const int64_t panels = (args.n + kPanel - 1) / kPanel;
  const float* scales = static_cast<const float*>(args.packed_b);
  const int8_t* packed = reinterpret_cast<const int8_t*>(scales + panels * kPanel);
  NarrowPart<Panel::kInt8>(args, scales, packed, part);
}

template <Panel kKind>
void HalfPart(const GemmArgs& args, const GemmPart& part) {
  NarrowPart<kKind>(args, nullptr, static_cast<const ElementOf<kKind>*>(args.packed_b), part);
}

void PackHalf(const HalfSource& b, int64_t k, int64_t n, uint16_t* packed) {
  for (int64_t column = 0; column < n; column += kPanel, packed += k * kPanel) {
    const int64_t live = std::min(kPanel, n - column);
    if (live < kPanel) std::memset(packed, 0, static_cast<size_t>(k * kPanel) * sizeof(uint16_t));
    if (b.transposed) {
      // A few rows of the panel at a time, so that its lines stay in the cache until they are full.
      constexpr int64_t kRows = 64;
      for (int64_t first = 0; first < k; first += kRows) {
        const int64_t end = std::min(k, first + kRows);
        for (int64_t j = 0; j < live; ++j) {
          const uint16_t* HWY_RESTRICT from = b.data + (column + j) * b.ld;
          for (int64_t i = first; i < end; ++i) packed[i * kPanel + j] = from[i];
        }
      }
    } else {
      for (int64_t i = 0; i < k; ++i) {
        std::memcpy(packed + i * kPanel, b.data + i * b.ld + column,
                    static_cast<size_t>(live) * sizeof(uint16_t));
      }
    }
  }
}

void PackInt8(const Int8Source& b, int64_t k, int64_t n, float scale, void* packed) {
  const int64_t panels = (n + kPanel - 1) / kPanel;
  float* scales = static_cast<float*>(packed);
  for (int64_t j = 0; j < panels * kPanel; ++j) {
    scales[j] = j >= n ? 0 : scale * (b.scales == nullptr ? 1 : b.scales[b.one_scale ? 0 : j]);
  }
  int8_t* to = reinterpret_cast<int8_t*>(scales + panels * kPanel);
  for (int64_t panel = 0; panel < panels; ++panel, to += k * kPanel) {
    const int64_t column = panel * kPanel;
    const int64_t live = std::min(kPanel, n - column);
    if (live < kPanel) std::memset(to, 0, static_cast<size_t>(k * kPanel));
    if (b.transposed) {
      for (int64_t j = 0; j < live; ++j) {
        const int8_t* HWY_RESTRICT from = b.data + (column + j) * b.ld;
        for (int64_t i = 0; i < k; ++i) to[i * kPanel + j] = from[i];
      }
    } else {
      for (int64_t i = 0; i < k; ++i) {
        std::memcpy(to + i * kPanel, b.data + i * b.ld + column, static_cast<size_t>(live));
      }
    }
  }
}

void Unpacked(const UnpackedGemmArgs& args, const GemmPart& part) {
  GemmArgs gemm = args.gemm;
  // There is nothing to prefetch after the panel in scratch.
  gemm.blocking.near = GemmBlocking::Near::kYes;
  for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
    const int64_t column = panel * kPanel;
    // Few rows read whole vectors of a row-major B in place. For more rows, copying a panel side by
    // side pays: rows a power of two apart share few sets of the cache.
    constexpr int64_t kFewRows = 8;
    const bool whole = column + kPanel <= gemm.n || (gemm.n - column) % kLanes == 0;
    const bool direct =
        !args.b.transposed && args.scale == 1 && whole && part.row_end - part.row_begin <= kFewRows;
    if (!direct) PackPanel(args.b, gemm.k, gemm.n, panel, args.scale, args.scratch);
    const float* b = direct ? args.b.data + column : args.scratch;
    const int64_t ldb = direct ? args.b.ld : kPanel;
    const int64_t row_block = RowBlock(gemm);
    for (int64_t begin = part.row_begin; begin < part.row_end; begin += row_block) {
      PanelRows(gemm, b, ldb, b, panel, begin, std::min(begin + row_block, part.row_end));
    }
  }
}

int64_t StretchOfManyRows() { return StretchRows(kMaxSplitRows); }
int64_t CloseRows(int64_t rows) {
  return RoomyCache() && LargeSecondCache() && !AreTwoLowTiles(rows) ? kCloseRows : 0;
}

}  // namespace

constexpr GemmKernels kGemmKernels = {.panel_columns = kPanel,
                                      .vector_columns = kLanes,
                                      .tile_rows = kTileRows,
                                      .stretch_rows = StretchOfManyRows,
                                      .close_rows = CloseRows,
                                      .pack = Pack,
                                      .part = Part,
                                      .unpacked = Unpacked,
                                      .pack_int8 = PackInt8,
                                      .part_int8 = Int8Part,
                                      .pack_half = PackHalf,
                                      .part_float16 = HalfPart<Panel::kFloat16>,
                                      .part_bfloat16 = HalfPart<Panel::kBFloat16>};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const GemmKernels& GemmKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kGemmKernels); }

GemmPart GemmKernels::Partition(int64_t m, int64_t n, bool int8, int parts, int part) const {
  const GemmCosts& of = int8 ? int8_costs : costs;
  const int64_t panels = Panels(n);
  const int64_t tiles = (m + tile_rows - 1) / tile_rows;
  int best_rows = 1;
  int best_panels = parts;
  double best = -1;
  for (int rows = 1; rows <= parts; ++rows) {
    const int columns = parts / rows;
    const int64_t part_tiles = (tiles + rows - 1) / rows;
    const int64_t part_panels = (panels + columns - 1) / columns;
    const double row_tile = columns == 1 ? of.row_tile : of.shared_tile;
    const double cost = static_cast<double>(part_tiles * part_panels) +
                        of.panel * static_cast<double>(part_panels) +
                        row_tile * static_cast<double>(part_tiles);
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
  result.row_begin = std::min(m, FirstOfPart(tiles, row_index, best_rows) * tile_rows);
  result.row_end = std::min(m, FirstOfPart(tiles, row_index + 1, best_rows) * tile_rows);
  result.panel_begin = FirstOfPart(panels, panel_index, best_panels);
  result.panel_end = FirstOfPart(panels, panel_index + 1, best_panels);
  return result;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
