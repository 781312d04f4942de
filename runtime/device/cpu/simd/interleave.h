// A few planes whose elements lie side by side taken apart, and put together again: the channels of
// pictures, halves that alternate.
//
// Threads: pure. The sides do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

inline constexpr int64_t kMostPlanes = 4;

// The kernels take 2 to kMostPlanes planes of `size` elements each.
struct InterleaveKernels {
  // to[plane * ld_to + i] = from[i * planes + plane]
  void (*apart)(const void* from, int64_t planes, int64_t size, void* to, int64_t ld_to);
  // to[i * planes + plane] = from[plane * ld_from + i]
  void (*together)(const void* from, int64_t ld_from, int64_t planes, int64_t size, void* to);
};

// Returns the kernels for elements of 1, 2, 4 or 8 bytes, of the highest tier that is not above
// `isa`.
const InterleaveKernels& InterleaveKernelsFor(Isa isa, size_t element_bytes);

}  // namespace reprise::cpu
