// The file format safetensors: eight bytes that say how long a JSON header is, the header with the
// dtype, shape and place of each tensor, and the bytes of all.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/tensor.h"

namespace reprise {

// Returns the tensors of `bytes` as float32, by name. F32, F16 and BF16 are read. Errors:
// INVALID_ARGUMENT naming the tensor for a damaged file, UNIMPLEMENTED for other dtypes.
absl::StatusOr<std::map<std::string, Tensor>> ReadSafetensors(absl::string_view bytes);

}  // namespace reprise
