// Windows that slide over planes of float32, a strip (tile) of them at a time: depthwise
// convolutions and pooling.
//
// The elements under the windows of a strip are copied first, with the padding around them and, for
// a stride along the width, each phase of the columns side by side. Whatever the kernel, its stride
// and its dilation, a tap of neighbouring windows is then a run of neighbouring floats in the L1
// cache, and no loop checks the edges of the plane. Every window is computed in the order of its
// taps, so that no division into strips changes a bit.
//
// Threads: all functions are pure; strips may be computed at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/graph/shape.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {

// The widest vector: a copy may be read past its last column by this many floats.
inline constexpr int64_t kVectorFloats = 16;

// Windows over planes of `in` rows and columns; one dim is a plane of one row.
struct Strips {
  static constexpr size_t kMaxDims = 2;
  // The limit on a copy, in floats. Windows that reach farther take the plain loops.
  static constexpr int64_t kMaxCopy = 1 << 20;

  struct Extent {
    int64_t rows = 1, columns = 1;
  };
  Extent in, out, kernel, stride, dilation, pad;  // pad: in front
  Extent strip;                                   // windows of a strip, at most
  int64_t phase = 0;                              // floats of one phase of a copied row
  int64_t line = 0;                               // floats of a copied row: all phases
  std::vector<int64_t> taps;                      // the offset of each tap from a window's begin
  std::vector<int64_t> kernel_columns;            // where each column of the kernel lies

  // Sets the size of a strip and the sizes that depend on it.
  void SetStrip(Extent size);

  int64_t num_taps() const { return kernel.rows * kernel.columns; }
  // Planes, windows and results have one row.
  bool IsRow() const { return in.rows == 1 && out.rows == 1 && kernel.rows == 1 && pad.rows == 0; }
  Extent counts() const;  // strips in a plane
  int64_t per_plane() const { return counts().rows * counts().columns; }
  // Floats of a copy, aligned to 64 bytes.
  int64_t CopyFloats() const;
};

// Turns planes of one column, where windows see only that column, into planes of one row: their
// elements lie as before, but neighbouring windows of a row are computed together. `spatial` has
// any number of dims, of which the last two are the plane.
void LayColumnsDown(ops::Windows& windows, Shape& spatial);

// Describes windows over `spatial` of one or two dims. No strip is set.
Strips StripsOf(const ops::Windows& windows, const Shape& spatial);
// Returns the same with strips that stay in the L1 cache, of `planes` for up to `parts`.
Strips PlanStrips(const ops::Windows& windows, const Shape& spatial, int64_t planes, int parts);

// Returns the size of strips of whole rows, of `planes` for up to `parts`: as large as lets every
// part have some.
Strips::Extent WholeRows(const Strips& strips, int64_t planes, int parts);

// One strip: windows [first, first + size).
struct Strip {
  Strips::Extent first, size;
};
Strip StripOf(const Strips& strips, int64_t index);

// y = min(max(sum + bias, low), high).
struct StripBounds {
  float bias = 0;
  bool bounded = false;
  float low = 0, high = 0;
};

// Returns the size of a piece of `count`, divided into pieces of about one size, at most `most`.
inline int64_t Even(int64_t count, int64_t most) {
  const int64_t pieces = (count + most - 1) / most;
  return (count + pieces - 1) / pieces;
}

struct StripKernels {
  // `x` is the plane, or null if there is none. Outside of it lies `padding`. Elements that no tap
  // sees are left as they were.
  void (*copy)(const Strips& strips, const Strip& strip, const float* x, float padding,
               float* copied);
  // The others write the strip's windows of the plane `y`.
  // `weights`: [taps].
  void (*convolve)(const Strips& strips, const Strip& strip, const float* copied,
                   const float* weights, const StripBounds& bounds, float* y);
  // NaN is kept, so that it is seen. The copy includes the padding.
  void (*largest)(const Strips& strips, const Strip& strip, const float* copied, float* y);
  // Sums over row_counts[row] * column_counts[column], which have an element for each row and
  // column of windows and a vector after them.
  void (*average)(const Strips& strips, const Strip& strip, const float* copied,
                  const float* row_counts, const float* column_counts, float* y);
};

// Returns the kernels of the highest tier that is not above `isa`.
const StripKernels& StripKernelsFor(Isa isa);

}  // namespace reprise::cpu
