// reprise.IntegerConv: the convolution of quantised planes by quantised weights, with the steps
// that follow, as floats or quantised again.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Inputs:
//   0 x         u8 or s8 [batch, channels, dims...]
//   1 weight    u8 or s8 [maps, channels / group, kernel...]
//   2 x_scale   f32: one element
//   3 w_scale   f32: one element, or [maps]
//   4 x_zero?   of x's dtype: one element; the padding of x
//   5 w_zero?   of weight's dtype: one element, or [maps]
//   6 bias?     f32 [maps]
//   7 residual? f32, of the shape of the result
//   8 y_scale?  f32: one element; with y_zero
//   9 y_zero?   u8 or s8: one element
// Attributes: as reprise.Conv.
// Output f32 [batch, maps, dims...], by the layout:
//   y = activation(x_scale w_scale sum (x - x_zero)(weight - w_zero) + bias + residual)
// with the sum exact in int32 (which wraps around); of y_zero's dtype, where there is one:
//   QuantizeLinear(y, y_scale, y_zero)
Rule IntegerConvRule;
Kernel IntegerConvKernel;

}  // namespace reprise::ops
