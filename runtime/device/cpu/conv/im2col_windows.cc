#include "runtime/device/cpu/conv/im2col_windows.h"

#include <algorithm>

namespace reprise::cpu {
namespace {

// The limit on channels times taps of one copy: deeper sums are added up stretch by stretch.
constexpr int64_t kMaxDepth = 8192;
// The limit on the copied elements of a block: half of a small L2 cache.
constexpr int64_t kBlockFloats = 64 << 10;
// The limits on the windows of a block. Rows that neighbouring blocks see are copied for each of
// them, which does not pay for a few windows, however deep they are.
constexpr int64_t kMinBlock = 96;
constexpr int64_t kMaxBlock = 768;
// The limit on a panel: three quarters of a small L1 cache.
constexpr int64_t kPanelFloats = 6 << 10;

}  // namespace

ConvWindows::Block ConvWindows::BlockOf(int64_t index) const {
  const int64_t columns = strips.out.columns;
  if (blocks_of_row > 0) {
    const int64_t row = index / blocks_of_row, column = index % blocks_of_row * block;
    return {row * columns + column, std::min(block, columns - column), row, row + 1, column};
  }
  const int64_t first = index * block, count = std::min(block, out_plane() - first);
  return {first, count, first / columns, (first + count - 1) / columns + 1, 0};
}

void ConvWindows::FillPanels(const float* x, int64_t slice, Channels of, const Block& block,
                             float* copies, float* panels) const {
  if (plain) {
    products->pack({.data = x + of.begin * in_plane() + block.first, .ld = in_plane()},
                   of.end - of.begin, block.count, 1.0f, panels);
    return;
  }
  const Strip strip = {
      .first = {block.row, block.column},
      .size = {block.row_end - block.row, blocks_of_row > 0 ? block.count : strips.out.columns}};
  const int64_t copy_floats = strips.CopyFloats();
  float* copied = copies;
  for (int64_t channel = of.begin; channel < of.end; ++channel) {
    for (int64_t tap = 0; tap < slice_taps; ++tap, copied += copy_floats) {
      const int64_t at = slice * slice_stride - slice_pad + tap * slice_dilation;
      const bool inside = at >= 0 && at < in_slices;
      strip_kernels->copy(
          strips, strip, inside ? x + (channel * in_slices + at) * in_plane() : nullptr, 0, copied);
    }
  }
  panel_kernels->panels(strips,
                        {.copies = copies,
                         .copy_floats = copy_floats,
                         .channels = (of.end - of.begin) * slice_taps,
                         .first = block.first,
                         .count = block.count,
                         .first_row = block.row,
                         .first_column = block.column},
                        panels);
}

void ConvWindows::SetBlocks(int64_t most, int64_t grain) {
  const int64_t columns = strips.out.columns;
  const auto divide = [&](int64_t windows) {
    const int64_t grains = (windows + grain - 1) / grain;
    const int64_t blocks = (grains * grain + most - 1) / most;
    block = (grains + blocks - 1) / blocks * grain;
    return (windows + block - 1) / block;
  };
  // Rows longer than a block are never copied as a whole.
  blocks_of_row = divide(columns);
  const bool long_rows = blocks_of_row > 1;
  if (!long_rows) {
    blocks_of_row = 0;
    divide(out_plane());
  }
  strips.SetStrip({.rows = long_rows ? 1 : std::min(strips.out.rows, block / columns + 2),
                   .columns = long_rows ? block : columns});
}

void ConvWindows::SetPanelStretch() {
  const int64_t deepest = kPanelFloats / products->panel_columns;
  const int64_t stretches = (depth() + deepest - 1) / deepest;
  stretch = std::min(stretch, (channels + stretches - 1) / stretches);
}

void ConvWindows::SetPanelBlocks() {
  const int64_t most = std::clamp(kBlockFloats / (stretch * channel_taps()), kMinBlock, kMaxBlock);
  SetBlocks(products->Panels(most) * products->panel_columns, products->panel_columns);
}

ConvWindows ConvWindowsOf(Isa isa, const ops::Windows& windows, const Shape& spatial,
                          int64_t channels) {
  ConvWindows w;
  w.products = &GemmKernelsFor(isa);
  w.strip_kernels = &StripKernelsFor(isa);
  w.panel_kernels = &ConvPanelKernelsFor(isa);
  w.channels = channels;
  ops::Windows planes = windows;
  Shape plane = spatial;
  if (spatial.size() == ConvWindows::kMaxDims) {
    w.in_slices = spatial[0];
    w.out_slices = windows.out[0];
    w.slice_taps = windows.kernel[0];
    w.slice_stride = windows.strides[0];
    w.slice_dilation = windows.dilations[0];
    w.slice_pad = windows.pad_begin[0];
    plane.erase(plane.begin());
    for (auto* values : {&planes.kernel, &planes.strides, &planes.dilations, &planes.pad_begin,
                         &planes.pad_end, &planes.out}) {
      values->erase(values->begin());
    }
  }
  w.strips = StripsOf(planes, plane);
  w.stretch = std::clamp<int64_t>(kMaxDepth / w.channel_taps(), 1, channels);
  const auto is = [](const Strips::Extent& extent, const Strips::Extent& wanted) {
    return extent.rows == wanted.rows && extent.columns == wanted.columns;
  };
  w.plain = w.channel_taps() == 1 && is(w.strips.stride, {1, 1}) && is(w.strips.pad, {0, 0}) &&
            is(w.strips.out, w.strips.in) && w.in_slices == 1 && w.out_slices == 1 &&
            w.slice_pad == 0;
  return w;
}

}  // namespace reprise::cpu
