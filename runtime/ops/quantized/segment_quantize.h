// reprise.SegmentDynamicQuantizeLinear: quantisation by the range of a whole request.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.SegmentDynamicQuantizeLinear(x, segments?): DynamicQuantizeLinear of each segment by the
// range of its own elements. x f32 [T, ..., K] -> y u8, x's shape; scale f32 and zero point u8,
// [T, ..., 1]: one for each line of x, the same in all of a segment, so that consumers broadcast.
// Without `segments` (as in ops/attention/segment.h) all of x is one. A segment here is a request:
// all of its rows share a range.
Rule SegmentDynamicQuantizeRule;
Kernel SegmentDynamicQuantizeKernel;

}  // namespace reprise::ops
