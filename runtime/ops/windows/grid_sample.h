// GridSample: the operand sampled at the places of a grid.
#pragma once

#include <cstdint>

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// GridSample(x [batch, channels, dims...], grid [batch, out dims..., number of dims]) is
// [batch, channels, out dims...]. A place has its coordinates from the last dim to the first, -1 to
// 1 from one side to the other. Attributes: mode (linear, nearest, cubic), padding_mode (zeros,
// border, reflection), align_corners.
// Returns the position along a dim of `size` of a place. The dtype of the grid decides how it is
// rounded, and so which of two elements is the nearest, as in ONNX's reference and in onnxruntime.
template <typename T>
T GridPosition(T place, int64_t size, bool align_corners) {
  const auto all = static_cast<T>(size);
  return align_corners ? (place + 1) / 2 * (all - 1) : ((place + 1) * all - 1) / 2;
}

Rule GridSampleRule;
Kernel GridSampleKernel;

}  // namespace reprise::ops
