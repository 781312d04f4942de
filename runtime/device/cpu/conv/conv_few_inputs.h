// Convolutions of few planes with NHWC results: a vector holds neighbouring maps of one window, and
// each element that a window sees is multiplied by vectors of the maps' weights.
//
// Threads: pure. Rows of windows may be computed at the same time.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// A row of windows.
struct FewChannels {
  const float* x = nullptr;  // the first element that the first window sees
  int64_t windows = 0;
  int64_t stride = 1;             // floats from a window to the next
  const int64_t* taps = nullptr;  // the offset of each tap of all channels from a window's begin
  int64_t num_taps = 0;
  const float* weights = nullptr;  // [taps, maps]
  int64_t maps = 0;
  const float* bias = nullptr;  // [maps] or null
  bool bounded = false;         // y = min(max(sum + bias, low), high)
  float low = 0, high = 0;
  float* y = nullptr;  // [windows, maps]
};

struct FewChannelKernels {
  // Every sum is in the order of the taps, and equals the one of ConvProductKernels::multiply to
  // the bit.
  void (*convolve)(const FewChannels& row) = nullptr;
};

// Returns the kernels of the highest tier that is not above `isa`.
const FewChannelKernels& FewChannelKernelsFor(Isa isa);

}  // namespace reprise::cpu
