// reprise.IntegerLinear: the product of quantised activations and quantised weights as floats, with
// the steps that follow.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Inputs:
//   0 a         u8 or s8 [..., K]
//   1 b         u8 or s8 [K, N]
//   2 a_scale   f32: one element, or one a row: [..., 1] with the leading dims of a
//   3 b_scale   f32: one element, or [N]
//   4 a_zero?   of a's dtype: one element, or one a row, as a_scale
//   5 b_zero?   of b's dtype: one element, or [N]
//   6 bias?     f32 [N]
//   7 residual? f32 [..., N]
// {activation}: as reprise.Linear has it. Output f32 [..., N]:
//   activation(a_scale b_scale sum_k (a - a_zero)(b - b_zero) + bias) + residual
// with the sum exact in int32 (which wraps around, from 2^15 products of the largest numbers on).
Rule IntegerLinearRule;
Kernel IntegerLinearKernel;

}  // namespace reprise::ops
