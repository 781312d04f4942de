// Weights of floats that become numbers of a few bits, once for each model version.
#pragma once

#include "runtime/graph/parameter_expr.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/kit/precision.h"

namespace reprise::ops {

// reprise.RoundedPart(w f32 [rows, columns], or the other way round with axis 0): attributes
// `part`, `bits`, `block` and `axis`,
//   "numbers", 8 bits -> i8, w's shape: the largest magnitude of a column is 127 steps;
//   "scales", 8 bits -> f32 [columns];
//   "numbers", 4 bits -> u8 [columns, ceil(rows / 2)]: numbers of a column from 0 to 15, low bits
//     first, in blocks of `block` whose number of the largest magnitude is 0, which stands for -8
//     steps: the numbers of reprise.DequantizeBits;
//   "scales", 4 bits -> f32 [columns, blocks].
Rule RoundedPartRule;
Kernel RoundedPartKernel;

// Elements of a column that share a factor of four bits: as short as most quantised decoders have
// them.
inline constexpr int64_t kNibbleBlock = 32;

// `weights`, a matrix of floats whose columns are dim `axis`, as the floats of their rounded
// numbers, in a form that SplitQuantized or a reader of reprise.DequantizeBits takes apart.
ParameterExprPtr RoundedWeights(const ParameterExprPtr& weights, int64_t axis, WeightBits form);

// Returns the length of the blocks along a column that share a factor in `weights` as they are
// stored; 0: they are stored in another way.
int64_t StoredBlockOf(const ParameterExprPtr& weights, int64_t axis);

}  // namespace reprise::ops
