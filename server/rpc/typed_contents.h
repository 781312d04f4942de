// InferTensorContents -> row-major bytes.
#pragma once

#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/grpc_service.pb.h"

namespace reprise {

// Returns the bytes of the field that the tensor's datatype belongs to: in place where the field
// has elements of that size, otherwise converted into a new string of `converted`; of BYTES each
// element after its length, as raw contents have it. An input without elements has none. Errors:
// INVALID_ARGUMENT for another field that is set, a value out of range, or a datatype that must be
// sent raw.
absl::StatusOr<absl::string_view> TypedBytes(
    const inference::ModelInferRequest::InferInputTensor& input,
    std::deque<std::string>& converted);

}  // namespace reprise
