// Depthwise convolution, max and average pooling with square windows that slide over
// planes of float32, which are read in place. The usual sizes are here; window_tiles.h
// takes any. Over planes of one row, windows of any size slide, with gaps too. Windows of
// one element, one for each element, are a factor and a bias. Pools of windows of one
// column join rows.
//
// Where a window hangs over the plane's edge vectors are loaded by masks, so that nothing outside
// of the plane is read. No division of the rows changes a bit.
//
// Threads: all functions are pure; rows may be computed at the same time.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/conv/window_tiles.h"

namespace reprise::cpu {

struct PlaneRows {
  int64_t begin = 0, end = 0;  // rows of windows
};

// Writes rows `rows` of the windows of the plane `y`. `weights`: [taps].
using PlaneConvolve = void (*)(const Strips& windows, const PlaneRows& rows, const float* x,
                               const float* weights, const StripBounds& bounds, float* y);
// The largest element of each window; the columns of each of its rows come first. A NaN is kept, so
// that it is seen.
using PlaneLargest = void (*)(const Strips& windows, const PlaneRows& rows, const float* x,
                              float* y);

// The sums of windows, divided by row_counts[row] * column_counts[column]; a vector is read after
// the last column's.
using PlaneAverage = void (*)(const Strips& windows, const PlaneRows& rows, const float* x,
                              const float* row_counts, const float* column_counts, float* y);

struct PlaneKernels {
  // By size and stride; null for those that have none.
  PlaneConvolve (*convolve)(const Strips& strips);
  PlaneLargest (*largest)(const Strips& strips);
  PlaneAverage (*average)(const Strips& strips);
};

// Returns the kernels of the highest tier that is not above `isa`.
const PlaneKernels& PlaneKernelsFor(Isa isa);

}  // namespace reprise::cpu
