// im2col of a block of a plane as lines that lie end to end: the next window of a row is the next
// element, and the first window of the next row follows after the last.
//
// A line has the length of the windows of a row and of the elements that they reach beyond them. So
// a run of windows may cross the ends of rows: a tap of it is a run of neighbouring elements, and
// the elements between two rows are no windows and are left out at the end. Steps of a stride are
// phases: planes of lines of their own, so that neighbouring windows are neighbours there too.
//
// Threads: constant once it is planned; the kernels are pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/conv/window_tiles.h"
#include "runtime/device/cpu/simd/parts.h"

namespace reprise::cpu {

struct ConvLines {
  Strips::Extent in, out, kernel, stride, dilation, pad;  // pad: in front
  Strips::Extent block;                                   // windows of a block, at most
  Strips::Extent phases;                                  // that windows see
  int64_t line = 0;                                       // floats
  int64_t phase_floats = 0;
  // By channel and tap, where each lies from a window's begin; along one dim by tap and channel.
  bool by_tap = false;
  std::vector<int32_t> taps;

  // Sets the size of a block of `channels` and the sizes that depend on it.
  void SetBlock(Strips::Extent size, int64_t channels);

  int64_t in_plane() const { return in.rows * in.columns; }
  int64_t out_plane() const { return out.rows * out.columns; }
  int64_t channel_floats() const { return phases.rows * phases.columns * phase_floats; }
  // Returns the floats of windows of `rows` rows, including the elements between the rows.
  int64_t Run(int64_t rows, int64_t columns) const { return (rows - 1) * line + columns; }
  Strips::Extent counts() const {  // blocks in a plane
    return {(out.rows + block.rows - 1) / block.rows,
            (out.columns + block.columns - 1) / block.columns};
  }
  int64_t blocks() const { return counts().rows * counts().columns; }
  Strip BlockOf(int64_t index) const;
  // Along one dim, the taps by which one of `count` windows from `window` on sees the row: the
  // others are zeros.
  ItemRange TapsInside(int64_t window, int64_t count) const;
};

struct ConvLineKernels {
  // Copies the elements of `x` that the windows of `block` see: channel_floats() floats.
  void (*copy)(const ConvLines& lines, const Strip& block, const float* x, float* to);
  // Rows of `columns` windows, `line` floats apart, go to rows `ld` floats apart.
  void (*spread)(const float* run, int64_t line, int64_t rows, int64_t columns, float* to,
                 int64_t ld);
};

// Returns the kernels of the highest tier that is not above `isa`.
const ConvLineKernels& ConvLineKernelsFor(Isa isa);

}  // namespace reprise::cpu
