// im2col for NHWC: the windows of planes whose channels lie last, as the rows of a GEMM, with a run
// of channels for each tap.
//
// Threads: constant once it is planned.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/conv/window_tiles.h"

namespace reprise::cpu {

struct WindowRows {
  // How the rows are formed.
  enum class Kind {
    kElements,  // windows are elements of the planes, which are read in place
    kRuns,      // windows are runs of a row of the planes, copied where it has padding
    kCopied,    // each window is copied by itself
  };
  // Windows [first, first + count) of a plane.
  struct Range {
    int64_t first, count;
  };

  Strips strips;  // its `strip` is not set; the padding in front may be below zero
  Kind kind = Kind::kCopied;
  int64_t channels = 0;        // channels of one group
  int64_t line = 0;            // floats from an element of the planes to the next, all groups
  int64_t row_floats = 0;      // floats from a row to the next
  int64_t scratch_floats = 0;  // the rows of `block` windows, a multiple of 64 bytes

  int64_t depth() const { return channels * strips.num_taps(); }
  int64_t in_floats() const { return strips.in.rows * strips.in.columns * line; }
  int64_t out_plane() const { return strips.out.rows * strips.out.columns; }

  // Returns the first of the rows of `windows` of the plane at `x`, whose first channel is the
  // first of a group.
  const float* Of(const float* x, const Range& windows, float* scratch) const;
};

// For blocks of up to `block` windows.
WindowRows WindowRowsOf(Strips strips, int64_t groups, int64_t channels, int64_t block);

}  // namespace reprise::cpu
