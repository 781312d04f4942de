// Conversions between floats and integers with a scale and a zero point.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Returns whether products of quantised numbers multiply this dtype.
inline bool IsByte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

Rule DequantizeLinearRule, QuantizeLinearRule, DynamicQuantizeLinearRule, QLinearMatMulRule;
Kernel DequantizeLinearKernel, QuantizeLinearKernel, DynamicQuantizeLinearKernel,
    QLinearMatMulKernel;

// reprise.FakeQuantize(x, scale, zero_point?): DequantizeLinear of QuantizeLinear, with the
// attributes of the latter: float32 that lies on the steps of an integer.
Rule FakeQuantizeRule;
Kernel FakeQuantizeKernel;

// Returns the dtype that QuantizeLinear, or reprise.FakeQuantize, quantises to; `zero_point`: the
// dtype of its zero point, kUndefined: it has none.
absl::StatusOr<DType> QuantizedTypeOf(const Node& node, DType zero_point);

// The scale that DynamicQuantizeLinear makes for a range: 255 steps over all of it and 0.
struct DynamicScale {
  float scale = 1;
  uint8_t zero_point = 0;
};
// Returns the scale for the range of `x` and 0; NaN is in no range.
DynamicScale DynamicScaleOf(const float* x, int64_t count);
// Returns the scale for `low` <= 0 <= `high`.
DynamicScale DynamicScaleOfRange(float low, float high);
void QuantizeBytes(const float* x, int64_t count, const DynamicScale& scale, uint8_t* y);
// Quantises all of `y`, which is of bytes, as QuantizeLinear does, with one scale and zero point.
void QuantizeAll(const float* x, float scale, int64_t zero_point, const MutableTensorView& y);

}  // namespace reprise::ops
