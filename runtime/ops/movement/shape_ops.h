// Ops about shapes: ops that read a shape, ops that give the same elements another shape (their
// kernel is CopyKernel), and ops that make elements from a shape.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule ShapeRule, SizeRule;
Kernel ShapeKernel, SizeKernel;

// Returns the dims that a Shape reports of an operand of `rank`: [start, end).
std::pair<int64_t, int64_t> ShapeRange(const Node& node, int64_t rank);

Rule ReshapeRule, SqueezeRule, UnsqueezeRule, FlattenRule;

Rule ConstantOfShapeRule, RangeRule, EyeLikeRule;
Kernel ConstantOfShapeKernel, RangeKernel, EyeLikeKernel;

}  // namespace reprise::ops
