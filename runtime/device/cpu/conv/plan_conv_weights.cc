// Convolutions of few windows: the elements of the windows, times the packed weights, for each
// group.
//
// A panel of windows (plan_conv.cc) is mostly empty where a plane has few, or few more than fill
// panels, and the weights then pass by for few results. Here the windows of several elements of the
// batch are the rows, and the weights are packed once and are streamed as in any product.
//
// Along one dim the elements of the windows are transposed, so that the channels of a position
// are contiguous: a window's row is then a run of them, tap by tap, and without gaps the rows are
// read in place. The results come out by window and are transposed on their way to the planes.
// Every sum equals the one of the other ways to the bit (plan_im2col_lines.cc along one dim,
// plan_conv.cc for planes), so that buckets of different sizes give the same answers, unless
// Winograd tiles compute the windows of one of them (plan_conv_winograd.cc).
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/simd/transpose.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

// With fewer the weights' panels are the ones that are mostly empty.
constexpr int64_t kFewestMaps = 32;
// The cost of transposing an element of a window, or of a result, in multiply-adds.
constexpr double kTurned = 24;
// With longer strides along one dim, im2col_lines copies the elements that neighbouring windows see
// one by one.
constexpr int64_t kMostLineStride = 2;
// The share by which products of packed elements are slower than products of packed weights.
constexpr double kPanelLoss = 0.1;
// A plane of one row with a lone vector of windows waits for its sums: this share is lost.
constexpr double kLoneVector = 0.25;
// Limits on the columns of a patch. Copying shorter lines one by one is slower than panels; from
// the longer limit on, patches always become rows.
constexpr int64_t kShortestLine = 4, kLongLine = 8;
// Panels of weights whose results are transposed at a time.
constexpr int64_t kTransposedPanels = 4;

struct ConvWeightsParams : ConvLaunch {
  ConvWindows windows;
  Transpose transpose = nullptr;
  int64_t groups = 1, maps = 0;  // the maps of one group
  int64_t elements = 1;          // batch elements in a block: one where a plane has several blocks
  bool patches = false;          // see ArePatches
  bool in_place = false;         // see WindowsAreRows
  int64_t row_floats = 0;        // floats from a window to the next
  int64_t sums_floats = 0, rows_floats = 0;

  int64_t panels() const { return windows.products->Panels(maps); }
  int64_t rows() const { return elements * windows.block; }
};

// Cuts `x` up where no two windows see the same element and they leave none out.
template <class Width>
void CutPatches(const ConvWindows& w, const float* x, const ConvWindows::Block& block,
                int64_t row_floats, Width width, float* rows) {
  const Strips& s = w.strips;
  for (int64_t channel = 0; channel < w.channels; ++channel) {
    for (int64_t i = 0; i < s.kernel.rows; ++i, rows += width) {
      float* to = rows;
      int64_t row = block.first / s.out.columns, column = block.first % s.out.columns;
      for (int64_t left = block.count; left > 0; ++row, column = 0) {
        const int64_t end = std::min(s.out.columns, column + left);
        left -= end - column;
        const float* line = x + (row * s.kernel.rows + i) * s.in.columns;
        for (; column < end; ++column, to += row_floats) {
          std::memcpy(to, line + column * width, static_cast<size_t>(width) * sizeof(float));
        }
      }
    }
    x += w.in_plane();
  }
}

// Places [begin, end) of a row, some of which may lie outside of it.
struct Seen {
  int64_t begin, end;
};
Seen ColumnsSeenBy(const Strips& s, const ConvWindows::Block& block) {
  const int64_t begin = block.first * s.stride.columns - s.pad.columns;
  return {begin, begin + (block.count - 1) * s.stride.columns +
                     (s.kernel.columns - 1) * s.dilation.columns + 1};
}

// Lays the channels of every place that is seen side by side, with zeros outside of the row.
void TurnSeen(const ConvWeightsParams& p, const float* x, const Seen& seen, float* turned) {
  const int64_t in = p.windows.strips.in.columns, channels = p.windows.channels;
  const int64_t begin = std::clamp<int64_t>(seen.begin, 0, in);
  const int64_t end = std::clamp(seen.end, begin, in);
  turned = std::fill_n(turned, (begin - seen.begin) * channels, 0.0f);
  if (channels == 1) {
    std::copy_n(x + begin, end - begin, turned);
  } else {
    p.transpose(x + begin, in, channels, end - begin, turned, channels);
  }
  std::fill_n(turned + (end - begin) * channels, (seen.end - end) * channels, 0.0f);
}

// Makes the rows of `count` windows, the first of which begins at `turned`.
void CopyWindows(const ConvWeightsParams& p, int64_t count, const float* turned, float* rows) {
  const Strips& s = p.windows.strips;
  const int64_t channels = p.windows.channels;
  const bool gaps = s.dilation.columns > 1;
  const int64_t runs = gaps ? s.kernel.columns : 1;
  const int64_t run = (gaps ? 1 : s.kernel.columns) * channels;
  for (int64_t window = 0; window < count; ++window) {
    for (int64_t i = 0; i < runs; ++i) {
      std::copy_n(turned + i * s.dilation.columns * channels, run, rows + i * run);
    }
    turned += s.stride.columns * channels;
    rows += p.row_floats;
  }
}

// Where the rows of a product are.
struct Rows {
  const float* data;
  int64_t ld;
};

// Makes one row for each window of a block from its elements of group `slab` of the batch. They are
// at `rows`, unless windows are rows where they lie. `seen` is scratch for the elements.
Rows FillRows(const ConvWeightsParams& p, const float* x, int64_t slab,
              const ConvWindows::Block& block, float* seen, float* rows) {
  const ConvWindows& w = p.windows;
  const Rows filled = {rows, p.row_floats};
  x += slab * w.channels * w.in_plane();
  if (w.plain) {
    p.transpose(x + block.first, w.in_plane(), w.channels, block.count, rows, p.row_floats);
    return filled;
  }
  if (p.patches) {
    const auto cut = [&](auto width) {
      CutPatches(w, x, block, p.row_floats, width, rows);
      return filled;
    };
    switch (w.strips.kernel.columns) {
      case 4:
        return cut(std::integral_constant<int64_t, 4>());
      case 8:
        return cut(std::integral_constant<int64_t, 8>());
      default:
        return cut(w.strips.kernel.columns);
    }
  }
  if (w.strips.IsRow()) {
    TurnSeen(p, x, ColumnsSeenBy(w.strips, block), seen);
    if (p.in_place) return {seen, w.strips.stride.columns * w.channels};
    CopyWindows(p, block.count, seen, rows);
    return filled;
  }
  float* const panels = seen + w.CopyFloats();
  w.FillPanels(x, 0, {0, w.channels}, block, seen, panels);
  const int64_t width = w.products->panel_columns;
  for (int64_t first = 0; first < block.count; first += width) {
    p.transpose(panels + first * w.depth(), width, w.depth(), std::min(width, block.count - first),
                rows + first * p.row_floats, p.row_floats);
  }
  return filled;
}

// Where the pieces of a part's scratch are.
struct PartScratch {
  float *rows, *sums, *seen;
};

// Panels [begin, end) of the maps of group `group` of a block of `count` elements from `element`
// on, whose windows are `rows`.
void MultiplyRows(const ConvWeightsParams& p, const ConvOperands& all, int64_t group,
                  int64_t element, int64_t count, const ConvWindows::Block& block, ItemRange panels,
                  const Rows& rows, float* sums) {
  const ConvWindows& w = p.windows;
  const int64_t width = w.products->panel_columns, depth = w.depth(), plane = w.out_plane();
  const float* const packed = all.weights + group * w.products->PackedFloats(depth, p.maps);
  for (int64_t panel = panels.begin, next; panel < panels.end; panel = next) {
    next = std::min(panels.end, panel + kTransposedPanels);
    const int64_t map = panel * width, maps = std::min(p.maps, next * width) - map;
    const int64_t ld = kTransposedPanels * width;
    w.products->part({.a = rows.data,
                      .lda = rows.ld,
                      .packed_b = packed + map * depth,
                      .c = sums,
                      .ldc = ld,
                      .n = maps,
                      .k = depth,
                      .bias = all.BiasOf(group * p.maps + map)},
                     {0, count * block.count, 0, next - panel});
    for (int64_t e = 0; e < count; ++e) {
      const int64_t slab = (element + e) * p.groups + group;
      const int64_t at = (slab * p.maps + map) * plane + block.first;
      p.transpose(sums + e * block.count * ld, ld, block.count, maps, all.out + at, plane);
      p.finish({.y = all.out + at,
                .ld = plane,
                .rows = maps,
                .columns = block.count,
                .residual = all.ResidualAt(at),
                .ld_residual = plane},
               p.activation);
    }
  }
}

// Runs units: a unit is a panel of the maps of a block of a group.
void RunConvWeights(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvWeightsParams*>(launch.params);
  const ConvWindows& w = p.windows;
  const int64_t live = p.Live(launch);
  const int64_t blocks = w.blocks(), panels = p.panels();
  const int64_t units = (live + p.elements - 1) / p.elements * p.groups * blocks * panels;
  const int parts = p.Parts(launch, units);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  float* const begin = all.scratch;
  const PartScratch scratch = {begin, begin + p.rows_floats, begin + p.rows_floats + p.sums_floats};
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin, next; unit < range.end; unit = next) {
    const int64_t index = unit / panels;
    next = std::min(range.end, (index + 1) * panels);
    const ConvWindows::Block block = w.BlockOf(index % blocks);
    const int64_t group = index / blocks % p.groups;
    const int64_t element = index / blocks / p.groups * p.elements;
    const int64_t count = std::min(p.elements, live - element);
    Rows rows = {scratch.rows, p.row_floats};
    for (int64_t e = 0; e < count; ++e) {
      const Rows filled = FillRows(p, all.x, (element + e) * p.groups + group, block, scratch.seen,
                                   scratch.rows + e * block.count * p.row_floats);
      if (e == 0) rows = filled;
    }
    MultiplyRows(p, all, group, element, count, block,
                 {unit - index * panels, next - index * panels}, rows, scratch.sums);
  }
}

// Returns whether windows lie side by side, without gaps between or padding around them, with
// lines that are worth a copy each. Some of the plane may be left over after the last windows,
// but none of them reaches over its end.
bool ArePatches(const Strips& s) {
  const auto same = [](const Strips::Extent& a, const Strips::Extent& b) {
    return a.rows == b.rows && a.columns == b.columns;
  };
  return !s.IsRow() && s.kernel.columns >= kShortestLine && same(s.kernel, s.stride) &&
         same(s.dilation, {1, 1}) && same(s.pad, {0, 0}) &&
         s.out.rows * s.kernel.rows <= s.in.rows &&
         s.out.columns * s.kernel.columns <= s.in.columns;
}

// Returns whether panels of windows leave such a share of all products empty that transposing the
// windows into rows costs no more.
bool PanelsAreEmpty(const ConvWindows& w, int64_t maps) {
  const int64_t windows = w.out_plane(), panel = w.products->panel_columns;
  const double turned =
      kTurned * (1 / static_cast<double>(w.depth()) + 1 / static_cast<double>(maps));
  const auto count = static_cast<double>(windows);
  if (w.strips.IsRow() && !w.plain) {
    // See plan_im2col_lines.cc, which uses vectors of windows and no panels.
    const int64_t lanes = w.products->vector_columns, rest = windows % lanes;
    const double empty = static_cast<double>(rest == 0 ? 0 : lanes - rest) / count;
    return w.strips.stride.columns > kMostLineStride ||
           turned < empty + (windows <= lanes ? kLoneVector : 0);
  }
  if (windows <= kMostRowsOfPlane) return true;
  // Half a panel is the least that one costs.
  const int64_t rest = windows % panel;
  const int64_t empty = rest == 0 ? 0 : std::max(panel / 2 - rest, int64_t{0});
  return turned * count < static_cast<double>(empty) + (w.plain ? kPanelLoss * count : 0);
}

// Returns whether the windows of a plane, transposed, are the rows of a product: along one dim and
// without gaps. Where a block has several elements of the batch, their windows are copied together.
bool WindowsAreRows(const ConvWeightsParams& p) {
  const Strips& s = p.windows.strips;
  return !p.windows.plain && !p.patches && p.elements == 1 && s.IsRow() && s.dilation.columns == 1;
}

// Returns whether there is a single plane along the dim in front, which every window sees.
bool IsOnePlane(const ConvWindows& w) {
  return w.in_slices == 1 && w.out_slices == 1 && w.slice_taps == 1 && w.slice_pad == 0;
}

// Returns the scratch for the most that a block sees.
int64_t SeenFloats(const ConvWeightsParams& p) {
  const ConvWindows& w = p.windows;
  if (w.plain || p.patches) return 0;
  if (!w.strips.IsRow()) {
    return w.CopyFloats() + static_cast<int64_t>(AlignUp(w.PanelFloats(), 16));
  }
  const Seen seen = ColumnsSeenBy(w.strips, {.first = 0, .count = w.block});
  return static_cast<int64_t>(AlignUp((seen.end - seen.begin) * w.channels, 16));
}

}  // namespace

std::vector<Candidate> PlanConvWeights(const CpuTarget& target, const NodeView& node,
                                       ConvWindows windows, const ConvActivation& activation) {
  const Shape& weight = node.shape(1);
  ConvWeightsParams p{ConvLaunch(target, node, activation)};
  p.windows = std::move(windows);
  ConvWindows& w = p.windows;
  p.groups = ConvOp::From(node.attributes()).group;
  p.maps = weight[0] / p.groups;
  p.patches = ArePatches(w.strips);
  if (!node.is_parameter(1) || !IsOnePlane(w) || w.stretch < w.channels || p.maps < kFewestMaps ||
      (!(p.patches && w.strips.kernel.columns >= kLongLine) && !PanelsAreEmpty(w, p.maps))) {
    return {};
  }
  w.SetBlocks(kMaxConvRows, 1);
  if (w.blocks() == 1) {
    p.elements = std::clamp<int64_t>(kMaxConvRows / w.out_plane(), 1, p.batch);
  }
  p.transpose = TransposeFor(target.isa);
  p.in_place = WindowsAreRows(p);
  // An odd number of cache lines: rows that are written together do not share the cache's sets.
  p.row_floats = static_cast<int64_t>(AlignUp(w.depth(), 16)) | 16;
  p.rows_floats = p.in_place ? 0 : p.rows() * p.row_floats;
  p.sums_floats = p.rows() * kTransposedPanels * w.products->panel_columns;
  p.scratch_floats = p.rows_floats + p.sums_floats + SeenFloats(p);
  PrepareStep pack = PackMapsOfGroups(*w.products, p.groups, p.maps, w.depth(),
                                      w.strips.IsRow() ? w.channel_taps() : 1);
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(w.depth());
  return ConvCandidates(target, node, "conv_weights", RunConvWeights, std::move(p), flops,
                        {std::move(pack)});
}

}  // namespace reprise::cpu
