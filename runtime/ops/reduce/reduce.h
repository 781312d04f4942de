// Ops that combine the elements along axes: Reduce*, ArgMax, ArgMin, TopK, CumSum, CumProd.
#pragma once

#include "runtime/ops/kit/infer.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {

// Inputs data and axes (optional); attributes keepdims = 1, noop_with_empty_axes = 0.
Rule ReduceRule, ReduceOrderRule;  // ReduceOrderRule takes bools as well: Max, Min
Kernel ReduceSumKernel, ReduceMeanKernel, ReduceMaxKernel, ReduceMinKernel, ReduceProdKernel,
    ReduceL1Kernel, ReduceL2Kernel, ReduceSumSquareKernel, ReduceLogSumKernel,
    ReduceLogSumExpKernel;

Rule ArgRule, TopKRule, CumSumRule;
Kernel ArgMaxKernel, ArgMinKernel, TopKKernel, CumSumKernel, CumProdKernel;

// Returns the index of the largest (smallest) of `size` elements, `step` apart: the first or last
// of equals. NaN is passed over unless it is the first; 0 of no elements.
template <typename T>
int64_t PlaceOfBest(const T* x, int64_t size, int64_t step, bool largest, bool last) {
  int64_t best = 0;
  for (int64_t k = 1; k < size; ++k) {
    const Compute<T> a = x[k * step], b = x[best * step];
    if ((largest ? a > b : a < b) || (last && a == b)) best = k;
  }
  return best;
}

}  // namespace reprise::ops
