// reprise.IntegerAdd: the sum of two quantised values, quantised again.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Inputs:
//   0 a, 1 b    u8 or s8, of one shape
//   2 a_scale, 3 b_scale, 4 y_scale   f32: one element each
//   5 a_zero, 6 b_zero, 7 y_zero      of a's and b's dtype, u8 or s8: one element each
// {activation}: as reprise.Conv has it. Output of y_zero's dtype and a's shape:
//   QuantizeLinear(activation(a_scale (a - a_zero) + b_scale (b - b_zero)), y_scale, y_zero)
Rule IntegerAddRule;
Kernel IntegerAddKernel;

}  // namespace reprise::ops
