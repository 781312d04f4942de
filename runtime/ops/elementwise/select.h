// Elementwise ops that choose or convert: Where, Clip, Cast, CastLike, Identity, Dropout.
#pragma once

#include "runtime/graph/dtype.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Returns the largest number of float16 or bfloat16: a bound of a Clip of that dtype that is left
// out.
inline float LargestHalf(DType dtype) { return dtype == DType::kFloat16 ? 65504.0f : 0x1.fep127f; }

Rule WhereRule, ClipRule, CastRule, CastLikeRule, DropoutRule;
Kernel WhereKernel, ClipKernel, CastKernel, CopyKernel, DropoutKernel;

}  // namespace reprise::ops
