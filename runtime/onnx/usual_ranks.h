// AtUsualRanks: ranks for inputs whose shape a file leaves open, where none are given.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

// Calls `load` with one rank for all of `open`, first the ranks of tables, sequences and images,
// until it is OK. Returns the first refusal where it never is. Without `open`, calls it once.
absl::Status AtUsualRanks(const std::vector<std::string>& open,
                          absl::FunctionRef<absl::Status(const InputRanks&)> load);

}  // namespace reprise
