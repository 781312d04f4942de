// Elementwise ops that choose or convert: Where, Clip, Cast, CastLike, Identity, Dropout.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule WhereRule, ClipRule, CastRule, CastLikeRule, DropoutRule;
Kernel WhereKernel, ClipKernel, CastKernel, CopyKernel, DropoutKernel;

// The dtype behind ONNX's number for it (TensorProto.DataType); UNIMPLEMENTED, naming it, for those
// that we lack.
absl::StatusOr<DType> DTypeFromOnnx(int64_t number);
// ONNX's number for a dtype.
int64_t DTypeToOnnx(DType dtype);

}  // namespace reprise::ops
