// Depthwise convolution over NHWC planes, [rows, columns, channels]: a vector holds neighbouring
// channels of one element, wherever in its row that is, and nothing is copied. Taps that lie
// outside of the plane are left out.
//
// Threads: pure. Rows of windows may be computed at the same time.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/conv/window_tiles.h"
#include "runtime/device/cpu/simd/parts.h"

namespace reprise::cpu {

struct LastPlanes {
  Strips strips;  // its `strip` is not set
  int64_t channels = 0;
  const float* weights = nullptr;  // [taps, channels]
  const float* bias = nullptr;     // [channels] or null
  bool bounded = false;            // y = min(max(sum + bias, low), high)
  float low = 0, high = 0;
};

struct LastPlaneKernels {
  // Rows `rows` of the windows of the plane `x`, into `y` [rows, out.columns, channels]; two at a
  // time are faster than one. Every sum equals the one of PlaneKernels::convolve to the bit.
  void (*convolve)(const LastPlanes& planes, const float* x, ItemRange rows, float* y) = nullptr;
};

// Returns the kernels of the highest tier that is not above `isa`.
const LastPlaneKernels& LastPlaneKernelsFor(Isa isa);

}  // namespace reprise::cpu
