// Convolution over the dims after batch and channel.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

// Conv(x [batch, channels, dims...], weight [maps, channels / group, kernel...], bias? [maps]).
Rule ConvRule;
Kernel ConvKernel;

}  // namespace reprise::ops
