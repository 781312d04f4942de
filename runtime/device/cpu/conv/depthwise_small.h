// Depthwise convolution over planes that are narrower than a vector: a vector holds one element of
// as many channels as it has lanes, so that no lane is empty.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/conv/window_tiles.h"

namespace reprise::cpu {

// Planes by channel, [rows, columns, lanes], with the padding that windows see around them.
struct ChannelPlanes {
  Strips::Extent padded, out, stride;
  std::vector<int64_t> taps;  // where each lies from a window's begin, in floats
};
// Returns the interleaved planes of one strip.
ChannelPlanes ChannelPlanesOf(const Strips& strips, int64_t lanes);

// The weights and bias of up to `lanes` channels.
struct ChannelTaps {
  const float* weights = nullptr;  // [taps, ld]
  int64_t ld = 0;
  const float* bias = nullptr;  // [live] or null
  int64_t live = 0;
  bool bounded = false;  // y = min(max(sum + bias, low), high)
  float low = 0, high = 0;
};

struct ChannelKernels {
  int64_t lanes = 1;  // a single lane gains nothing
  // `y`: [out.rows, out.columns, lanes]. Every sum equals the one of PlaneKernels::convolve to the
  // bit.
  void (*convolve)(const ChannelPlanes& planes, const float* x, const ChannelTaps& taps,
                   float* y) = nullptr;
};

// Returns the kernels of the highest tier that is not above `isa`.
const ChannelKernels& ChannelKernelsFor(Isa isa);

}  // namespace reprise::cpu
