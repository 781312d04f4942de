// Ops that combine the elements along axes: Reduce*, ArgMax, ArgMin, TopK, CumSum, CumProd.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

// Inputs data and axes (optional); attributes keepdims = 1, noop_with_empty_axes = 0.
Rule ReduceRule, ReduceOrderRule;  // ReduceOrderRule takes bools as well: Max, Min
Kernel ReduceSumKernel, ReduceMeanKernel, ReduceMaxKernel, ReduceMinKernel, ReduceProdKernel,
    ReduceL1Kernel, ReduceL2Kernel, ReduceSumSquareKernel, ReduceLogSumKernel,
    ReduceLogSumExpKernel;

Rule ArgRule, TopKRule, CumSumRule;
Kernel ArgMaxKernel, ArgMinKernel, TopKKernel, CumSumKernel, CumProdKernel;

}  // namespace reprise::ops
