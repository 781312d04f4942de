// Pooling over windows of the dims after batch and channel.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule AveragePoolRule;
Kernel AveragePoolKernel;

// Outputs the largest elements, and where they are: element numbers of the whole operand, counted
// by rows or with storage_order = 1 by columns.
Rule MaxPoolRule;
Kernel MaxPoolKernel;

// The p-norm of the elements of a window; missing ones count as 0.
Rule LpPoolRule;
Kernel LpPoolKernel;

// All of the dims are one window.
Rule GlobalPoolRule;
Kernel GlobalAveragePoolKernel, GlobalMaxPoolKernel, GlobalLpPoolKernel;

}  // namespace reprise::ops
