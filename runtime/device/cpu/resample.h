// Rows of float32 sampled at other columns, and sums of rows: the halves of Resize.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/cpu_info.h"

namespace reprise::cpu {

// Each column of a result is a sum of `taps` columns. Places and weights are [taps][stride]; places
// never decrease, and behind the last of the `columns` they repeat it. `stride` is a whole number
// of the widest vectors.
struct ResampledColumns {
  int taps = 0;
  int64_t in_columns = 0;
  int64_t columns = 0, stride = 0;
  std::vector<int32_t> places;
  std::vector<float> weights;
};

struct ResampleKernels {
  // `to` has room for `stride` floats.
  void (*columns)(const ResampledColumns& columns, const float* from, float* to);
  // to = the sum of `count` rows of `size`, times their weights.
  void (*rows)(const float* const* rows, const float* weights, int count, int64_t size, float* to);
};

// The kernels of the highest tier that is not above `isa`.
const ResampleKernels& ResampleKernelsFor(Isa isa);

}  // namespace reprise::cpu
