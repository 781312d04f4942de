// Resize: an operand sampled at other positions.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

// Resize(x, roi?, scales?, sizes?): modes nearest, linear and cubic, one dim after the other.
Rule ResizeRule;
Kernel ResizeKernel;

}  // namespace reprise::ops
