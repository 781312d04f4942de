// Planes of float32 sampled at other rows and columns: the work of a Resize.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// Each column of a result is a sum of `taps` columns. Places and weights are [taps][stride]; places
// never decrease, and after the last of the `columns` they repeat it. `stride` is a whole number
// of the widest vectors.
struct ResampledColumns {
  int taps = 0;  // 0: columns stay as they are
  int64_t in_columns = 0;
  int64_t columns = 0, stride = 0;
  std::vector<int32_t> places;
  std::vector<float> weights;
};

// Planes [in_rows, in_columns] that become planes [out_rows, columns]. A lone tap has weight 1.
struct Resampling {
  static constexpr int kMaxRowTaps = 64;
  // Rows that are sampled once and kept for all that are made of them. With more taps than that the
  // rows come first.
  static constexpr int kKeptRows = 4;
  // `floats` rounded up to whole ones of the widest vectors.
  static constexpr int64_t WholeVectors(int64_t floats) { return (floats + 15) / 16 * 16; }

  int64_t in_rows = 0, out_rows = 0;
  int row_taps = 1;                 // taps of each row of the result; they are neighbours
  std::vector<int32_t> row_places;  // [out_rows, row_taps]
  std::vector<float> row_weights;
  ResampledColumns columns;
  // The sum of the rows is sampled, not the sum of the sampled rows taken: less work where rows of
  // the result share none.
  bool rows_first = false;

  // Floats that a part works in.
  int64_t ScratchFloats() const;
};

struct ResampleKernels {
  // Rows [begin, end) of the result, counted through all planes, of the planes at `x` into those
  // at `out`.
  void (*rows)(const Resampling& of, int64_t begin, int64_t end, const float* x, float* scratch,
               float* out);
};

// Returns the kernels of the highest tier that is not above `isa`.
const ResampleKernels& ResampleKernelsFor(Isa isa);

}  // namespace reprise::cpu
