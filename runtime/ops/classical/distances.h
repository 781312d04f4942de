// Distances between rows, from which radial kernels of support vectors and nearest neighbours are
// computed.
//
// reprise.Distances: inputs x [rows, k] and y [k, columns], both f32 or both f64; attribute `power`
// is from 1 to kMostPower, 2 by default. The result is [rows, columns]: the sum of |x[r, i] - y[i,
// c]| ^ power over i, from the differences themselves, so that rows far from zero and near to each
// other keep their precision. A k of 1 is repeated for the other's.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule DistancesRule;
Kernel DistancesKernel;

inline constexpr int64_t kMostPower = 16;
// Returns the attribute.
int64_t PowerOfDistances(const Attributes& attributes);

}  // namespace reprise::ops
