// How far rows are from other rows: what radial kernels of support vectors and nearest neighbours
// are made of.
//
// reprise.Distances: inputs x [rows, k] and y [k, columns], both f32 or both f64; attribute `power`
// is from 1 to kMostPower, 2 by default. The result is [rows, columns]: the sum of
// |x[r, i] - y[i, c]| ^ power over i, of the differences themselves, so that what lies far from
// zero and near to each other loses nothing. A k of 1 is repeated for the other's.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule DistancesRule;
Kernel DistancesKernel;

inline constexpr int64_t kMostPower = 16;
// The attribute.
int64_t PowerOfDistances(const Attributes& attributes);

}  // namespace reprise::ops
