// Which cases of the ONNX backend suite count: those that use only the ops and dtypes that Reprise
// promises, less a table of exclusions.
#pragma once

#include <optional>
#include <string>

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Returns why the model is outside the promise ("op 'Conv'", "dtype string"), or nothing when it is
// inside.
std::optional<std::string> OutsideScope(const onnx::ModelProto& model);

// Returns the reason in the table of exclusions, if the case is in it.
std::optional<std::string> ExclusionReason(const std::string& case_name);

}  // namespace reprise
