// Ops that put the elements of an operand into another order.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// DepthToSpace [batch, depth, height, width] {blocksize, mode DCR or CRD}, and back.
Rule DepthToSpaceRule, SpaceToDepthRule;
Kernel DepthToSpaceKernel, SpaceToDepthKernel;

// ReverseSequence(x, sequence_lens [batch]) {batch_axis = 1, time_axis = 0}: the first
// `sequence_lens` elements of each row are reversed, the others stay.
Rule ReverseSequenceRule;
Kernel ReverseSequenceKernel;

}  // namespace reprise::ops
