// How far rows are from other rows: what radial kernels of support vectors are made of.
//
// reprise.SquaredDistances: inputs x [rows, k] and y [k, columns], f32; the result is
// [rows, columns]: the sum of (x[r, i] - y[i, c])^2 over i, of the differences themselves, so that
// what lies far from zero and near to each other loses nothing.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule SquaredDistancesRule;
Kernel SquaredDistancesKernel;

}  // namespace reprise::ops
