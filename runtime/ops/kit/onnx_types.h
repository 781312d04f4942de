// ONNX's numbers for dtypes, as attributes such as `to` of Cast hold them.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/graph/dtype.h"

namespace reprise::ops {

// Returns the dtype for ONNX's number of it (TensorProto.DataType); UNIMPLEMENTED, naming it, for
// dtypes that we lack.
absl::StatusOr<DType> DTypeFromOnnx(int64_t number);
// Returns the number of `dtype`, which is not kUndefined.
int64_t OnnxNumber(DType dtype);

// Numbers of dtypes that this library does not have.
inline constexpr int64_t kOnnxUInt4 = 21, kOnnxInt4 = 22;

}  // namespace reprise::ops
