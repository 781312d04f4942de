// im2col: the elements under the windows of a convolution, in the layouts that the GEMMs read.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/conv/window_tiles.h"

namespace reprise::cpu {

// Windows [first, first + count) of a plane, counted row by row, of the copies of `channels` planes
// that lie `copy_floats` apart and begin with the row of window `first_row` and column
// `first_column`.
struct CopiedWindows {
  const float* copies = nullptr;
  int64_t copy_floats = 0;
  int64_t channels = 0;
  int64_t first = 0, count = 0;
  int64_t first_row = 0, first_column = 0;
};

struct ConvPanelKernels {
  // The right side of a product (see GemmArgs::packed_b): a column a window, a row a channel and
  // tap.
  void (*panels)(const Strips& strips, const CopiedWindows& windows, float* panels);
};

// Returns the kernels of the highest tier up to `isa`, whose products have the same panels.
const ConvPanelKernels& ConvPanelKernelsFor(Isa isa);

}  // namespace reprise::cpu
