// Det: the determinant of each matrix of a stack.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Det(x [.., n, n]) is [..]. Sums are double. The determinant of a matrix without elements is 1,
// and of one that holds NaN is NaN.
Rule DetRule;
Kernel DetKernel;

// Returns the determinant of `n` rows of `n`, by elimination with partial pivoting; `m` is used up.
double Determinant(double* m, int64_t n);

}  // namespace reprise::ops
