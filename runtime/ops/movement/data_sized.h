// Ops whose results have as many elements as the data says. Their shape rules need the elements:
// FAILED_PRECONDITION, "depends on data", without them (see passes/cut/cuts.h for the handling of
// such nodes).
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule NonZeroRule, CompressRule, UniqueRule;
Kernel NonZeroKernel, CompressKernel, UniqueKernel;

}  // namespace reprise::ops
