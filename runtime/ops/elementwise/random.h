// Random numbers, which differ in each run unless a seed is given.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// RandomNormal and RandomUniform have a `shape` and a `dtype` (float32 unless given), the others
// take shape and dtype of their operand. Attributes: mean and scale, or low and high; seed. With a
// seed all runs draw the same numbers, which only this runtime draws: no two runtimes agree on
// them.
Rule RandomRule, RandomLikeRule;
Kernel RandomNormalKernel, RandomUniformKernel;

// Bernoulli(x): 1 with the probability x, else 0.
Rule BernoulliRule;
Kernel BernoulliKernel;

}  // namespace reprise::ops
