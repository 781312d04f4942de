// Planes of float32 as a whole: their averages, and normalisations over the planes of a group of
// channels (InstanceNormalization, GroupNormalization).
//
// Vectors sum some thousand elements each, and these sums are added as doubles, so that an image is
// as exact as a few elements. Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// y = (x - mean) / sqrt(variance + epsilon) * scale[channel] + bias[channel], mean and variance
// over each group of channels of an element of the batch.
struct ChannelNormArgs {
  const float* x = nullptr;      // [groups of all elements, channels, plane]
  const float* scale = nullptr;  // [groups of one element, channels]
  const float* bias = nullptr;   // likewise
  float* y = nullptr;            // may be x
  int64_t groups = 1;            // groups of one batch element
  int64_t channels = 1;          // channels of one group
  int64_t plane = 0;
  float epsilon = 0;
};

struct ChannelNormKernels {
  // Groups [begin, end), counted through the batch.
  void (*norm)(const ChannelNormArgs& args, int64_t begin, int64_t end);
  // y[r] = the average of the `plane` elements of row r, for rows [begin, end).
  void (*averages)(const float* x, int64_t plane, float* y, int64_t begin, int64_t end);
};

// Returns the kernels of the highest tier that is not above `isa`.
const ChannelNormKernels& ChannelNormKernelsFor(Isa isa);

}  // namespace reprise::cpu
