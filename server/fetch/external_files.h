// The files next to a model's that hold its tensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

// Returns the locations of external data that an ONNX file names (it is called `name` in errors),
// each once, in order; weights in the file itself are skipped, not read. Errors: a location that
// leads out of the model's folder, bytes that are no ONNX.
absl::StatusOr<std::vector<std::string>> ExternalFiles(const std::filesystem::path& model,
                                                       const std::string& name);

}  // namespace reprise
