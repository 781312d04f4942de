// Transposed convolution: each element of the operand is spread over a window of the result.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// ConvTranspose(x [batch, channels, dims...], weight [channels, maps / group, kernel...],
// bias? [maps]).
Rule ConvTransposeRule;
Kernel ConvTransposeKernel;

// reprise.ConvTranspose(x, weight, bias?): activation(ConvTranspose), float32. Attributes are
// ConvTranspose's, and the activation's and the layout of reprise.Conv.
Rule FusedConvTransposeRule;
Kernel FusedConvTransposeKernel;

}  // namespace reprise::ops
