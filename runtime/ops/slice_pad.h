// Slice and Pad: a part of the input, and the input inside something larger.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule SliceRule, PadRule;
Kernel SliceKernel, PadKernel;

}  // namespace reprise::ops
