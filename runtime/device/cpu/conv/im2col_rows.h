// What windows see of planes whose channels lie last, as the rows of a product: a run of channels
// for each tap.
//
// Threads: constant once it is planned.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/conv/window_tiles.h"

namespace reprise::cpu {

struct WindowRows {
  // How the rows come about.
  enum class Kind {
    kElements,  // of the planes: windows are
    kRuns,      // of a row of the planes, which is copied where it has padding
    kCopied,    // each by itself
  };
  // Windows [first, first + count) of a plane.
  struct Range {
    int64_t first, count;
  };

  Strips strips;  // without a strip; the padding in front may be below zero
  Kind kind = Kind::kCopied;
  int64_t channels = 0;        // of a group
  int64_t line = 0;            // of all groups: from an element of the planes to the next
  int64_t row_floats = 0;      // from a row to the next
  int64_t scratch_floats = 0;  // for the rows of `block` windows, a multiple of 64 bytes

  int64_t depth() const { return channels * strips.num_taps(); }
  int64_t in_floats() const { return strips.in.rows * strips.in.columns * line; }
  int64_t out_plane() const { return strips.out.rows * strips.out.columns; }

  // The first of the rows of `windows` of the plane at `x`, whose first channel is that of a group.
  const float* Of(const float* x, const Range& windows, float* scratch) const;
};

// For blocks of up to `block` windows.
WindowRows WindowRowsOf(Strips strips, int64_t groups, int64_t channels, int64_t block);

}  // namespace reprise::cpu
