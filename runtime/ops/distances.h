// How far rows are from other rows: what radial kernels of support vectors and nearest neighbours
// are made of.
//
// reprise.Distances: inputs x [rows, k] and y [k, columns], f32; attribute `power` is 2 (the
// default) or 1. The result is [rows, columns]: the sum of |x[r, i] - y[i, c]| ^ power over i, of
// the differences themselves, so that what lies far from zero and near to each other loses nothing.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule DistancesRule;
Kernel DistancesKernel;

// The attribute, checked by the rule.
int64_t PowerOfDistances(const Attributes& attributes);

}  // namespace reprise::ops
