// A part of a weight, cut where the model stores it: kernels find the form that they read, and no
// more than the part is ever made.
#pragma once

#include <cstdint>

#include "runtime/graph/parameter_expr.h"

namespace reprise::ops {

// Returns elements [begin, begin + count) of dim `axis` of `weights`.
ParameterExprPtr SlicedWeights(const ParameterExprPtr& weights, int64_t axis, int64_t begin,
                               int64_t count);

// Returns how many numbers along dim `axis` of a matrix must stay together, so that its parts are
// stored as the whole is.
int64_t StoredTogether(const ParameterExprPtr& weights, int64_t axis);

}  // namespace reprise::ops
