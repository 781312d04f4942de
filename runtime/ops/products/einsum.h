// Einsum: sums of products along labelled dims.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule EinsumRule;
Kernel EinsumKernel;

}  // namespace reprise::ops
