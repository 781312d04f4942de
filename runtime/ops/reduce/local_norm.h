// LRN: each element divided by a power of its neighbourhood along the channels.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// LRN(x [batch, channels, dims...]) with the attributes size, alpha, beta, bias:
// x / (bias + alpha / size * sum of squares of the `size` channels around)^beta.
Rule LrnRule;
Kernel LrnKernel;

}  // namespace reprise::ops
