// What the windows of a convolution see, made into panels: the elements of a block of windows, one
// row a channel and tap, zeros where a window hangs over the edge.
//
// Between the operand and the panels lies a copy of the rows that the block sees, with its padding
// (window_tiles.h). A third dim in front is more channels: of each of its taps the plane that it
// sees.
//
// Threads: constant once it is planned.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_info.h"
#include "runtime/device/cpu/conv/im2col_panels.h"
#include "runtime/device/cpu/conv/window_tiles.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/graph/shape.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {

struct ConvWindows {
  static constexpr size_t kMaxDims = 3;
  // Of the rows that a block sees, in floats: dilations that reach farther are for the plain loops.
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
  bool plain = false;         // a window is an element: panels are made of the operand itself
  int64_t channels = 0;       // of a group
  int64_t block = 0;          // windows, at most
  int64_t blocks_of_row = 0;  // that no other row has a share in; 0: blocks reach over rows
  int64_t stretch = 0;        // channels in panels at a time

  int64_t in_plane() const { return strips.in.rows * strips.in.columns; }
  int64_t out_plane() const { return strips.out.rows * strips.out.columns; }
  int64_t channel_taps() const { return slice_taps * strips.num_taps(); }
  int64_t depth() const { return channels * channel_taps(); }
  int64_t blocks() const {  // of a plane
    return blocks_of_row > 0 ? strips.out.rows * blocks_of_row : (out_plane() + block - 1) / block;
  }
  Block BlockOf(int64_t index) const;

  // Of scratch, aligned to 64 bytes: for the copy of a stretch of channels, and for its panels.
  int64_t CopyFloats() const { return plain ? 0 : stretch * slice_taps * strips.CopyFloats(); }
  int64_t PanelFloats() const { return products->PackedFloats(stretch * channel_taps(), block); }

  // What `block` of slice `slice` sees of `of`; `x` is a group of one element of the batch.
  void FillPanels(const float* x, int64_t slice, Channels of, const Block& block, float* copies,
                  float* panels) const;

  // Blocks of about one size, up to `most` windows, which are multiples of `grain`.
  void SetBlocks(int64_t most, int64_t grain);
  // Channels in panels at a time, about as many each time, so that a panel and the weights of a
  // tile stay in the first-level cache, and all weights that meet it in the second.
  void SetPanelStretch();
  // Of whole panels, whose elements stay in the cache.
  void SetPanelBlocks();
};

// `spatial` of up to kMaxDims dims. No blocks are set.
ConvWindows ConvWindowsOf(Isa isa, const ops::Windows& windows, const Shape& spatial,
                          int64_t channels);

}  // namespace reprise::cpu
