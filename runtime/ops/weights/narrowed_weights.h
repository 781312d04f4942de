// Floats that are all numbers of a half, as in models that were trained in half and written in
// float32: bfloat16 for most decoders, float16 for many encoders.
//
// The importer marks such a matrix: Cast(Cast{reprise.exact}(p)), to the half and back, is p. A
// kernel that reads halves takes the inner Cast, and moves half of the bytes; for all others both
// are removed.
#pragma once

#include "absl/strings/string_view.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/graph/tensor.h"

namespace reprise::ops {

// Returns the half that has every number of `tensor`; kUndefined where neither has, or where it is
// no matrix of float32 that is worth it. Reads a page of most others, and all of one that it names.
DType HalfThatHolds(const Tensor& tensor);

// Returns `floats` as marked by its half.
ParameterExprPtr Narrowed(const ParameterExprPtr& floats, DType half);

// Returns whether a node or an expression is the inner Cast of such a mark: to half, and it loses
// nothing.
bool IsNarrowing(absl::string_view op, const Attributes& attributes);

// Returns `expression` without marks.
ParameterExprPtr WithoutNarrowing(const ParameterExprPtr& expression);

}  // namespace reprise::ops
