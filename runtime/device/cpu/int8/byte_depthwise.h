// Depthwise convolutions over quantised NHWC planes: the lanes of a vector are neighbouring
// channels, and the elements that a window sees are rows of them.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"

namespace reprise::cpu {

struct ByteDepthwise {
  int64_t channels = 0;
  int64_t pairs = 0;  // pairs of taps; if taps are odd, the last weights are 0
  bool x_signed = false;
  int x_zero = 0;
  const int16_t* weights = nullptr;  // [pairs][channels][2], less their zero points
  const float* scale = nullptr;      // [channels], of the sums
  const float* bias = nullptr;       // [channels] or null
  ByteFinish finish;                 // the result is of floats where this has no scale
};

struct ByteDepthwiseKernels {
  // Taps of weights [taps][channels] as ByteDepthwise has them.
  void (*widen)(const uint8_t* weights, const BytePoints& zero, int64_t taps, int64_t channels,
                int16_t* widened);
  // Computes `windows` neighbouring windows, each of which sees 2 * pairs rows of channels. `y` and
  // `residual` (or null) are [windows, channels].
  void (*run)(const ByteDepthwise& conv, const uint8_t* const* seen, int64_t windows,
              const float* residual, void* y);
};

// Returns the kernels of the highest tier that is not above `isa`; all tiers give the same
// integers.
const ByteDepthwiseKernels& ByteDepthwiseKernelsFor(Isa isa);

}  // namespace reprise::cpu
