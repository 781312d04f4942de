// Pooling over windows of the dims after batch and channel.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule AveragePoolRule;
Kernel AveragePoolKernel;

// Outputs the largest elements, and where they are: element numbers of the whole operand, counted
// by rows or with storage_order = 1 by columns.
Rule MaxPoolRule;
Kernel MaxPoolKernel;

// All of the dims are one window.
Rule GlobalPoolRule;
Kernel GlobalAveragePoolKernel, GlobalMaxPoolKernel;

}  // namespace reprise::ops
