// Walks through ensembles of decision trees (runtime/ops/classical/forest.h).
//
// A step loads a node, loads the column that it tests, compares and adds, and each of these waits
// for the one before: eight walks go side by side, of eight rows through one tree, or of one row
// through eight trees, without a branch that could be mispredicted. Rows are first given the extra
// columns that a node may test: mirrored columns, and the one that is NaN.
//
// Leaves are added tree by tree in double, so that neither the grouping of rows nor other rows
// change a bit. Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/ops/classical/forest.h"

namespace reprise::cpu {

// Rows that walk side by side, and walks of one row.
inline constexpr int64_t kForestLanes = 8;

// Groups of kForestLanes rows that are prepared together: the most that fit into the L1 cache with
// a tree.
inline int64_t ForestGroups(int64_t columns, int64_t element_bytes) {
  constexpr int64_t kBytes = 16 << 10, kMost = 16;
  const int64_t of_group = columns * kForestLanes * element_bytes;
  return of_group * kMost <= kBytes ? kMost : of_group >= kBytes ? 1 : kBytes / of_group;
}

template <typename T>
struct ForestRows {
  const T* x;      // the first row
  int64_t stride;  // elements from one row to the next
  int64_t rows;    // at most kForestLanes * ForestGroups
  int64_t chunk;   // whose trees are walked through
  double* sums;    // sums of the first row, all chunks: [rows, chunks, targets]
  T* scratch;      // [columns * kForestLanes * ForestGroups]
};

struct ForestKernels {
  void (*floats)(const ops::ForestView<float>& forest, const ForestRows<float>& rows);
  void (*doubles)(const ops::ForestView<double>& forest, const ForestRows<double>& rows);
};

// Returns the kernels of the highest tier that is not above `isa`.
const ForestKernels& ForestKernelsFor(Isa isa);

}  // namespace reprise::cpu
