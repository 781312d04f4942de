// im2col into panels: the elements under a block of windows, one row for each channel and tap, with
// zeros where a window hangs over the edge.
//
// Between the operand and the panels lies a copy of the rows that the block sees, with its padding
// (window_tiles.h). A third dim in front acts as more channels: each of its taps adds the plane
// that it sees.
//
// Threads: constant once it is planned.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/conv/im2col_panels.h"
#include "runtime/device/cpu/conv/window_tiles.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/graph/shape.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {

struct ConvWindows {
  static constexpr size_t kMaxDims = 3;
  // The limit on the copied rows of a block, in floats. Longer dilations take the plain loops.
  static constexpr int64_t kMaxCopy = 16 << 20;

  // Windows [first, first + count) of a plane, within rows [row, row_end) and from `column` on.
  struct Block {
    int64_t first, count, row, row_end, column;
  };
  struct Channels {
    int64_t begin, end;
  };

  const GemmKernels* products = nullptr;
  const StripKernels* strip_kernels = nullptr;
  const ConvPanelKernels* panel_kernels = nullptr;
  // The planes of the last two dims, and along the dim in front of them.
  Strips strips;
  int64_t in_slices = 1, out_slices = 1, slice_taps = 1;
  int64_t slice_stride = 1, slice_dilation = 1, slice_pad = 0;
  bool plain = false;         // windows are elements: panels are made of the operand itself
  int64_t channels = 0;       // channels of one group
  int64_t block = 0;          // windows, at most
  int64_t blocks_of_row = 0;  // blocks that lie within one row; 0: blocks reach over rows
  int64_t stretch = 0;        // channels in panels at a time

  int64_t in_plane() const { return strips.in.rows * strips.in.columns; }
  int64_t out_plane() const { return strips.out.rows * strips.out.columns; }
  int64_t channel_taps() const { return slice_taps * strips.num_taps(); }
  int64_t depth() const { return channels * channel_taps(); }
  int64_t blocks() const {  // blocks of one plane
    return blocks_of_row > 0 ? strips.out.rows * blocks_of_row : (out_plane() + block - 1) / block;
  }
  Block BlockOf(int64_t index) const;

  // Scratch, aligned to 64 bytes: the copy of a stretch of channels, and its panels.
  int64_t CopyFloats() const { return plain ? 0 : stretch * slice_taps * strips.CopyFloats(); }
  int64_t PanelFloats() const { return products->PackedFloats(stretch * channel_taps(), block); }

  // Packs the channels `of` that `block` of slice `slice` sees; `x` is a group of a batch element.
  void FillPanels(const float* x, int64_t slice, Channels of, const Block& block, float* copies,
                  float* panels) const;

  // Blocks of about one size, up to `most` windows, which are multiples of `grain`.
  void SetBlocks(int64_t most, int64_t grain);
  // Sets how many channels are in panels at a time, in nearly equal stretches, so that a panel and
  // the weights of a tile stay in the L1 cache, and all weights that meet it in the L2 cache.
  void SetPanelStretch();
  // Makes blocks of whole panels, whose elements stay in the cache.
  void SetPanelBlocks();
};

// `spatial` of up to kMaxDims dims. No blocks are set.
ConvWindows ConvWindowsOf(Isa isa, const ops::Windows& windows, const Shape& spatial,
                          int64_t channels);

}  // namespace reprise::cpu
