// Files of a model's folder that define the transforms of pictures:
// preprocessor_config.json as transformers writes it, and labels.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

struct PictureFiles {
  std::string transforms;           // as client/images declares them; empty: no file says
  std::vector<std::string> labels;  // the id is the place; empty: no file says
  std::string model_type;           // config.json: "detr"
};

// Reads the folder of `model_file`, and up to two above it. INVALID_ARGUMENT names the file and the
// member that is damaged or asks for a transform that is not supported.
absl::StatusOr<PictureFiles> ReadPictureFiles(const std::filesystem::path& model_file);

// Returns the transforms that the text of a preprocessor_config.json asks for.
absl::StatusOr<std::string> TransformsOf(const std::string& preprocessor_json);

}  // namespace reprise
