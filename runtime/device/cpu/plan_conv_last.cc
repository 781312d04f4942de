// Convolutions of planes whose channels lie last, whose results do so too. What a window sees of a
// group is a row of a product with the group's packed weights: a run of channels for each tap.
// Where windows are elements, and along one dim without gaps, these are rows where they lie; but
// for the padding, with which what a block of windows sees is copied. Sums are those of
// plan_conv.cc to the bit where a window is an element, and those of plan_conv_lines.cc along one
// dim.
#include <algorithm>

#include "runtime/device/cpu/plan_conv.h"
#include "runtime/ops/conv.h"

namespace reprise::cpu {
namespace {

// How the rows of a block come about.
enum class RowsAre {
  kElements,  // of the planes: windows are
  kRuns,      // of a row of the planes, which is copied where it has padding
  kCopied,    // each by itself
};

struct ConvLastParams {
  const GemmKernels* products = nullptr;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  Strips strips;
  RowsAre rows_are = RowsAre::kCopied;
  int64_t batch = 0, batch_rows = 0;
  int64_t groups = 1, channels = 0, maps = 0;  // of a group
  int64_t block = 0;                           // windows at a time
  int64_t row_floats = 0;                      // from a row to the next
  int64_t scratch_floats = 0;
  bool has_bias = false;
  int residual = -1;  // among the operands
  int out = 0, workspace = 0;
  int scratch_parts = 0;

  int64_t depth() const { return channels * strips.num_taps(); }
  int64_t out_plane() const { return strips.out.rows * strips.out.columns; }
  int64_t line() const { return groups * channels; }  // floats of an element of the planes
};

// Windows [first, first + count) of an element of the batch.
struct WindowRange {
  int64_t first, count;
};

// What windows see of the channels from `x` on, row by row.
void CopyRows(const ConvLastParams& p, const float* x, const WindowRange& windows, float* rows) {
  const Strips& s = p.strips;
  const int64_t channels = p.channels, line = p.line();
  for (int64_t i = 0; i < windows.count; ++i, rows += p.row_floats) {
    const int64_t window = windows.first + i;
    const int64_t row = window / s.out.columns * s.stride.rows - s.pad.rows;
    const int64_t column = window % s.out.columns * s.stride.columns - s.pad.columns;
    float* to = rows;
    for (int64_t tap_row = 0; tap_row < s.kernel.rows; ++tap_row) {
      const int64_t at_row = row + tap_row * s.dilation.rows;
      const bool row_inside = at_row >= 0 && at_row < s.in.rows;
      const float* const from = x + at_row * s.in.columns * line;
      if (row_inside && s.dilation.columns == 1 && line == channels && column >= 0 &&
          column + s.kernel.columns <= s.in.columns) {
        to = std::copy_n(from + column * line, s.kernel.columns * channels, to);
        continue;
      }
      for (int64_t tap = 0; tap < s.kernel.columns; ++tap) {
        const int64_t at = column + tap * s.dilation.columns;
        const bool inside = row_inside && at >= 0 && at < s.in.columns;
        to = inside ? std::copy_n(from + at * line, channels, to) : std::fill_n(to, channels, 0.0f);
      }
    }
  }
}

// The elements of a row of the planes that windows see, with zeros for those outside of it.
const float* SeenRun(const ConvLastParams& p, const float* x, const WindowRange& windows,
                     float* scratch) {
  const Strips& s = p.strips;
  const int64_t channels = p.channels;
  const int64_t first = windows.first * s.stride.columns - s.pad.columns;
  const int64_t end = first + (windows.count - 1) * s.stride.columns + s.kernel.columns;
  if (first >= 0 && end <= s.in.columns) return x + first * channels;
  const int64_t begin_inside = std::clamp<int64_t>(first, 0, s.in.columns);
  const int64_t end_inside = std::clamp(end, begin_inside, s.in.columns);
  float* to = std::fill_n(scratch, (begin_inside - first) * channels, 0.0f);
  to = std::copy_n(x + begin_inside * channels, (end_inside - begin_inside) * channels, to);
  std::fill_n(to, (end - end_inside) * channels, 0.0f);
  return scratch;
}

// The rows of `windows` of the plane at `x`, of a group.
const float* RowsOf(const ConvLastParams& p, const float* x, const WindowRange& windows,
                    float* scratch) {
  switch (p.rows_are) {
    case RowsAre::kElements:
      return x + windows.first * p.line();
    case RowsAre::kRuns:
      return SeenRun(p, x, windows, scratch);
    case RowsAre::kCopied:
      CopyRows(p, x, windows, scratch);
      return scratch;
  }
  return nullptr;
}

// A unit is a panel of the maps of a block of windows of a group.
void RunConvLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvLastParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* weights = static_cast<const float*>(launch.operands[1]);
  const auto* bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr;
  const auto* residual =
      p.residual < 0 ? nullptr : static_cast<const float*>(launch.operands[p.residual]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  // The elements of a batch are one plane where its windows are elements.
  const int64_t live = LiveOf(p.batch, p.batch_rows, *launch.frame);
  const bool joined = p.rows_are == RowsAre::kElements;
  const int64_t plane = joined ? live * p.out_plane() : p.out_plane();
  const int64_t blocks_of_plane = (plane + p.block - 1) / p.block;
  const int64_t blocks = (joined ? 1 : live) * p.groups * blocks_of_plane;
  const int64_t width = p.products->panel_columns, panels = p.products->Panels(p.maps);
  const int parts = static_cast<int>(std::min<int64_t>(
      blocks * panels,
      p.scratch_floats == 0 ? launch.parts : PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  float* const scratch = p.scratch_floats == 0 ? nullptr
                                               : static_cast<float*>(launch.operands[p.workspace]) +
                                                     launch.part * p.scratch_floats;
  const int64_t all_maps = p.groups * p.maps;
  const int64_t grain = blocks < kFewConvBlocks * parts ? 1 : panels;
  const ItemRange units = RangeOfPart(blocks * panels, grain, launch.part, parts);
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t block = unit / panels;
    next = std::min(units.end, (block + 1) * panels);
    const int64_t first = block % blocks_of_plane * p.block;
    const WindowRange windows = {first, std::min(p.block, plane - first)};
    const int64_t group = block / blocks_of_plane % p.groups;
    const int64_t element = block / blocks_of_plane / p.groups;
    const float* const of_plane = x + element * p.strips.in.rows * p.strips.in.columns * p.line();
    const ItemRange of = {unit - block * panels, next - block * panels};
    const int64_t map = of.begin * width;
    const int64_t at = (element * plane + first) * all_maps + group * p.maps;
    p.products->part({.a = RowsOf(p, of_plane + group * p.channels, windows, scratch),
                      .lda = p.row_floats,
                      .packed_b = weights + group * p.products->PackedFloats(p.depth(), p.maps),
                      .c = out + at,
                      .ldc = all_maps,
                      .n = p.maps,
                      .k = p.depth(),
                      .bias = bias == nullptr ? nullptr : bias + group * p.maps},
                     {0, windows.count, of.begin, of.end});
    p.finish({.y = out + at + map,
              .ld = all_maps,
              .rows = windows.count,
              .columns = std::min(p.maps, of.end * width) - map,
              .residual = residual == nullptr ? nullptr : residual + at + map,
              .ld_residual = all_maps},
             p.activation);
  }
}

RowsAre WhatRowsAre(const Strips& s, int64_t groups) {
  const auto is = [](const Strips::Extent& extent, int64_t size) {
    return extent.rows == size && extent.columns == size;
  };
  if (is(s.kernel, 1) && is(s.stride, 1) && is(s.pad, 0) && s.out.rows == s.in.rows &&
      s.out.columns == s.in.columns) {
    return RowsAre::kElements;
  }
  return s.IsRow() && s.dilation.columns == 1 && groups == 1 ? RowsAre::kRuns : RowsAre::kCopied;
}

}  // namespace

std::vector<Candidate> PlanConvLast(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kMaxDims = 2;
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  const Shape &of_node = node.shape(0), &weight = node.shape(1);
  if (!activation.has_value() || NumElements(node.out_shape()) == 0 || NumElements(of_node) == 0 ||
      of_node.size() > kMaxDims + 2 || !node.is_parameter(1)) {
    return {};
  }
  const Shape x = ops::ChannelsFirst(of_node);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!windows.ok()) return {};
  Shape spatial(x.begin() + 2, x.end());
  LayColumnsDown(*windows, spatial);
  if (weight[1] == 1 && node.attributes().Int("group", 1) > 1) {
    std::vector<Candidate> alone = PlanDepthwiseLast(target, node, *windows, spatial, *activation);
    if (!alone.empty()) return alone;
  }
  std::vector<Candidate> tiles =
      PlanConvWinograd(target, node, *windows, *activation, /*last=*/true);
  if (!tiles.empty()) return tiles;
  ConvLastParams p;
  p.products = &GemmKernelsFor(target.isa);
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  p.strips = StripsOf(*windows, spatial);
  p.groups = node.attributes().Int("group", 1);
  p.rows_are = WhatRowsAre(p.strips, p.groups);
  p.batch = x[0];
  p.batch_rows = p.batch % std::max<int64_t>(node.batch_rows(), 1) == 0 ? node.batch_rows() : 0;
  p.channels = weight[1];
  p.maps = weight[0] / p.groups;
  const bool joined = p.rows_are == RowsAre::kElements;
  p.block = std::min(kMaxConvRows, (joined ? p.batch : 1) * p.out_plane());
  p.has_bias = node.has_input(2);
  if (node.has_input(3)) p.residual = 3;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  if (p.rows_are == RowsAre::kElements) {
    p.row_floats = p.line();
  } else if (p.rows_are == RowsAre::kRuns) {
    p.row_floats = p.strips.stride.columns * p.channels;
    p.scratch_floats = static_cast<int64_t>(
        AlignUp((p.block - 1) * p.row_floats + p.strips.kernel.columns * p.channels, 16));
  } else {
    // An odd number of cache lines: rows that are written together do not share the cache's sets.
    p.row_floats = static_cast<int64_t>(AlignUp(p.depth(), 16)) | 16;
    p.scratch_floats = p.block * p.row_floats;
  }
  p.scratch_parts = target.scratch_parts;
  const int64_t groups = p.groups;
  const int64_t depth = p.depth(), maps = p.maps, taps = p.strips.num_taps();
  const size_t workspace = sizeof(float) * p.scratch_floats * p.scratch_parts;
  const int64_t columns = p.products->panel_columns;
  const size_t packed = sizeof(float) * groups * p.products->PackedFloats(depth, maps);
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(depth);
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "conv_last", RunConvLast, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  candidate.option.prepare.push_back({.input = 1,
                                      .op = kPackOp,
                                      .attributes = {{"panel", columns},
                                                     {"maps", maps},
                                                     {"groups", groups},
                                                     {"scale", 1.0f},
                                                     {"taps", taps},
                                                     {"transposed", int64_t{1}}},
                                      .dtype = DType::kUInt8,
                                      .shape = {static_cast<int64_t>(packed)}});
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
