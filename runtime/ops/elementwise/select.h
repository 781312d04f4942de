// Elementwise ops that choose or convert: Where, Clip, Cast, CastLike, Identity, Dropout.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule WhereRule, ClipRule, CastRule, CastLikeRule, DropoutRule;
Kernel WhereKernel, ClipKernel, CastKernel, CopyKernel, DropoutKernel;

}  // namespace reprise::ops
