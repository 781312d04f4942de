// Distances of rows from columns (runtime/ops/distances.h). Every sum is added in the order of its
// elements. Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_info.h"

namespace reprise::cpu {

struct DistanceArgs {
  const float* x;  // [rows, size]
  const float* y;  // [size, columns]
  int64_t size, columns;
  int64_t first_row, end_row;
  int64_t first_column, end_column;
  float* sums;  // [rows, columns]
};

struct DistanceKernels {
  void (*squared)(const DistanceArgs& args);   // power 2
  void (*absolute)(const DistanceArgs& args);  // power 1
};

// The kernels of the highest tier that is not above `isa`.
const DistanceKernels& DistanceKernelsFor(Isa isa);

}  // namespace reprise::cpu
