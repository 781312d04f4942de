// im2col for convolutions of bytes: each window becomes a row of bytes that lie side by side, and
// the rows are the left operand of a product.
#pragma once

#include <cstdint>

#include "runtime/base/aligned_buffer.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/int8/integer_conv_plan.h"

namespace reprise::cpu {

struct ByteWindows {
  int64_t in_plane() const { return rows.in * columns.in; }
  int64_t out_plane() const { return rows.out * columns.out; }
  int64_t depth() const { return channels * rows.kernel * columns.kernel; }
  // Returns the depth of rows in whole words: zero points follow the elements of the window.
  int64_t whole_depth() const { return (depth() + 3) / 4 * 4; }
  // Returns the distance between rows: the copy of a row's last elements may reach over its end.
  int64_t row_bytes() const { return static_cast<int64_t>(AlignUp(depth() + kMostWordTaps)); }

  // Returns whether windows are copied by words. Where channels are planes of their own, a window
  // sees a short piece of a few rows of planes, and each piece is copied as one word.
  bool by_words() const {
    return !x_last && columns.dilation == 1 && columns.kernel <= kMostWordTaps &&
           channels * rows.kernel <= kMostPieces;
  }
  static constexpr int64_t kMostWordTaps = 16;
  static constexpr int64_t kMostPieces = 64;

  PlaneAxis rows, columns;
  int64_t groups = 1;
  int64_t channels = 0;  // channels of one group
  bool x_last = false;   // NHWC: channels lie last
};

// Copies the bytes of group `group` under `count` windows from `first` on, counted through all
// planes of `x`: ordered by channels where these are planes of their own, else by taps. `zero`
// fills the padding. `seen` is [count][row_bytes()].
using SeeByteWindows = void (*)(const ByteWindows& p, const uint8_t* x, int64_t group,
                                int64_t first, int64_t count, uint8_t zero, uint8_t* seen);

// Returns the function of the highest tier that is not above `isa`.
SeeByteWindows SeeByteWindowsFor(Isa isa);

}  // namespace reprise::cpu
