// GridSample: the operand sampled wherever a grid says.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// GridSample(x [batch, channels, dims...], grid [batch, out dims..., number of dims]) is
// [batch, channels, out dims...]. A place has its coordinates from the last dim to the first, -1 to
// 1 from one side to the other. Attributes: mode (linear, nearest, cubic), padding_mode (zeros,
// border, reflection), align_corners.
Rule GridSampleRule;
Kernel GridSampleKernel;

}  // namespace reprise::ops
