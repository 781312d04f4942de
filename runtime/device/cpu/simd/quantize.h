// Between floats and integers with a scale and a zero point, as ONNX defines it, over arrays that
// lie side by side. Every tier gives the same bits as the reference kernels
// (runtime/ops/quantized/quantize).
//
// Threads: pure. Arrays do not overlap, but y of `fake` may be x.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/graph/dtype.h"

namespace reprise::cpu {

// y[i] = f(x[i], scale, zero) for `count` elements. `zero` is of the quantised dtype, null: 0.
using QuantizeFunction = void (*)(const void* x, const float* scale, const void* zero, void* y,
                                  int64_t count);

// For a quantised dtype of 8 or 16 bits, nullptr for any other. `many`: element i has scale[i] and
// zero[i]; else all have the first.
struct QuantizeKernels {
  // Floats to `dtype`: x / scale to the nearest, halves to even, plus zero, saturated; NaN becomes
  // the least value.
  QuantizeFunction (*quantize)(DType dtype, bool many);
  // `dtype` to floats; also int32, which has no zero point.
  QuantizeFunction (*dequantize)(DType dtype, bool many);
  // Floats to `dtype` and back.
  QuantizeFunction (*fake)(DType dtype, bool many);
  // Widens [low, high] to hold each x[i] that is a number.
  void (*range)(const float* x, int64_t count, float& low, float& high);
};

// Returns the kernels of the highest tier that is not above `isa`.
const QuantizeKernels& QuantizeKernelsFor(Isa isa);

}  // namespace reprise::cpu
