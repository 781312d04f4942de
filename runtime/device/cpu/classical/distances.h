// Distances of rows from columns (runtime/ops/classical/distances.h). Every sum is added in the
// order of its elements. Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

template <typename T>
struct DistanceArgs {
  const T* x;  // [rows, size]
  const T* y;  // [size, columns]
  int64_t size, columns;
  int64_t power;  // within the attribute's range
  int64_t first_row, end_row;
  int64_t first_column, end_column;
  T* sums;  // [rows, columns]
};

struct DistanceKernels {
  void (*floats)(const DistanceArgs<float>& args);
  void (*doubles)(const DistanceArgs<double>& args);
};

// Returns the kernels of the highest tier that is not above `isa`.
const DistanceKernels& DistanceKernelsFor(Isa isa);

}  // namespace reprise::cpu
