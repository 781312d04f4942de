// Pooling over windows of the dims after batch and channel.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule AveragePoolRule;
Kernel AveragePoolKernel;

}  // namespace reprise::ops
