// The inner loop of convolutions: the weights of maps times a panel of windows, and the epilogue of
// the sums.
//
//   y[map, window] = activation(sum over k of w[map, k] * b[k, window] + bias[map] + residual)
//
// Weights are packed by tiles of maps, so that a step of k reads neighbouring floats. A panel of
// windows (GemmKernels::panel_columns of them, [depth, panel]) is made ahead (im2col_windows.h) or,
// where the elements lie in rows already, by the first tile that reads it: it multiplies and copies
// at the same time, and the tiles after it find the panel in the cache. For few maps no panel is
// made: each row of it is read in place. Every element is summed in the order of k, so that no
// division of the work changes a bit.
//
// Threads: all functions are pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/gemm/conv_finish.h"

namespace reprise::cpu {

// Strides are in elements; `y`, `bias` and `residual` begin with map 0.
struct ConvProduct {
  const float* weights = nullptr;  // the result of `pack` for [maps, depth]
  int64_t maps = 0, depth = 0;
  int64_t begin_k = 0, end_k = 0;   // the range of k to sum over
  bool first = true;                // else `y` holds the sums so far
  bool last = true;                 // the epilogue follows
  float* panel = nullptr;           // [end_k - begin_k, panel_columns], aligned to a vector
  const float* in_place = nullptr;  // row begin_k, of which the panel is made; null: it is made
  int64_t ld_in_place = 0;
  // If not null, no panel is made: row begin_k + i is read from in_place + taps[i], up to a whole
  // vector.
  const int32_t* taps = nullptr;
  float* y = nullptr;
  int64_t ld = 0;
  int64_t columns = 0;  // windows, 1 to panel_columns
  // With the last of the sums:
  const float* bias = nullptr;      // [maps] or null
  const float* residual = nullptr;  // [maps, columns] or null
  int64_t ld_residual = 0;
  bool bounded = false;  // clamped to [low, high]
  float low = 0, high = 0;
};

struct ConvProductKernels {
  int64_t tile_maps;
  int64_t panel_columns;
  int64_t vector_columns;
  // Writes maps * depth floats.
  void (*pack)(const float* weights, int64_t maps, int64_t depth, float* packed);
  // Tiles [begin, end) of the maps, one panel.
  void (*multiply)(const ConvProduct& product, int64_t begin, int64_t end);

  int64_t Tiles(int64_t maps) const { return (maps + tile_maps - 1) / tile_maps; }
  // Returns the first map of tile `tile`; for the last tile + 1, the end. A last tile of few
  // maps shares maps with the tile in front of it.
  int64_t MapOf(int64_t tile, int64_t maps) const;
  // Returns the number of windows to multiply next, of `rest`, where no panel sets it. A lone
  // vector of windows waits for its own sums, so the last windows share with those in front of
  // them.
  int64_t NextColumns(int64_t rest) const;
};

// Returns the kernels of the highest tier up to `isa`, for products without `taps`, with the
// panels of GemmKernels.
const ConvProductKernels& ConvProductKernelsFor(Isa isa);
// Returns the same for products with `taps`.
const ConvProductKernels& ConvTapKernelsFor(Isa isa);

}  // namespace reprise::cpu
