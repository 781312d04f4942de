// The prepare steps of the weights of convolutions, which bring them once into the order in which a
// kernel reads them.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Weights [maps, channels, taps] as [maps, taps, channels].
std::vector<float> TapsFirst(const float* weights, int64_t maps, int64_t depth, int64_t taps);

// Packs weights [channels, maps, taps] as one matrix of `columns` columns, the taps of all maps.
inline PrepareStep PackTapsOfMaps(const GemmKernels& products, int64_t channels, int64_t columns) {
  const size_t bytes = sizeof(float) * products.PackedFloats(channels, columns);
  return {.input = 1,
          .op = kPackOp,
          .attributes = {{"panel", products.panel_columns},
                         {"maps", columns},
                         {"scale", 1.0f},
                         {"transposed", int64_t{0}}},
          .dtype = DType::kUInt8,
          .shape = {static_cast<int64_t>(bytes)}};
}

// Packs weights of `groups` groups of `maps` maps, each map a row of `depth` weights. `taps`: of a
// channel, where sums go tap by tap.
inline PrepareStep PackMapsOfGroups(const GemmKernels& products, int64_t groups, int64_t maps,
                                    int64_t depth, int64_t taps) {
  const size_t bytes = sizeof(float) * groups * products.PackedFloats(depth, maps);
  return {.input = 1,
          .op = kPackOp,
          .attributes = {{"panel", products.panel_columns},
                         {"maps", maps},
                         {"groups", groups},
                         {"scale", 1.0f},
                         {"taps", taps},
                         {"transposed", int64_t{1}}},
          .dtype = DType::kUInt8,
          .shape = {static_cast<int64_t>(bytes)}};
}

// Packs the `elements` weights of all maps by tiles of maps; see ConvProductKernels. `taps`: of a
// channel, where sums go tap by tap.
inline PrepareStep PackMaps(int64_t elements, int64_t groups, int64_t tile, int64_t taps = 1) {
  return {.input = 1,
          .op = kPackMapsOp,
          .attributes = {{"groups", groups}, {"tile", tile}, {"taps", taps}},
          .dtype = DType::kUInt8,
          .shape = {elements * static_cast<int64_t>(sizeof(float))}};
}

// Weights [maps, channels, kernel...] with the first `dims` dims, 1 or 2, after the others: by
// tap.
PrepareStep MapsLast(const Shape& weight, size_t dims);

}  // namespace reprise::cpu
