// Where the largest or the smallest of some floats is, as ArgMax, ArgMin and TopK ask.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// Among equals the first wins, or the last. A NaN is skipped unless it comes first: that gives 0.
struct PlaceOf {
  bool largest = true;
  bool last = false;
};

struct PlaceKernels {
  // places[c] = the row of column c's, for each of `size` columns of 1 <= `rows` < 2^31 elements.
  // Rows of x are `stride` apart.
  void (*columns)(PlaceOf of, const float* x, int64_t stride, int64_t rows, int64_t size,
                  int64_t* places);

  // places[r] = the place in row r, for rows of 1 <= `size` < 2^31 elements that lie side by side.
  void (*rows)(PlaceOf of, const float* x, int64_t size, int64_t row_begin, int64_t row_end,
               int64_t* places);

  // Where in x[begin, end) the first element is that is larger (not `largest`: smaller) than
  // `bound`, or may not be compared with it because one of the two is NaN; `end`: nowhere.
  int64_t (*first_beyond)(bool largest, const float* x, int64_t begin, int64_t end, float bound);
};

// Returns the kernels of the highest tier that is not above `isa`.
const PlaceKernels& PlaceKernelsFor(Isa isa);

}  // namespace reprise::cpu
