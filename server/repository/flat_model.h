// Models without folders of versions: a flat folder as model hubs have it, with model.onnx or
// onnx/model.onnx in it, or a model file by itself. It is version 1, and FoundModel::folder is its
// file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/repository/repository_scan.h"

namespace reprise {

// A model that is named by itself, in the place of a repository: "minilm=/models/all-MiniLM-L6-v2".
struct NamedModel {
  std::string name;
  std::string path;  // a folder, or a model file
};

// Returns the model that `repository` names; nullopt where a folder has this name, which is a
// repository.
std::optional<NamedModel> ParseNamedModel(absl::string_view repository);

// In each of `repositories` that names a flat folder, the folder becomes the file `variant` of it
// ("int8": model_int8.onnx; empty: model.onnx). Errors: NOT_FOUND listing the files;
// INVALID_ARGUMENT for a place elsewhere whose name cannot be read.
absl::Status ChooseVariant(const std::string& variant, std::vector<std::string>& repositories);

// It has no folders of versions.
bool IsFlat(const FoundModel& model);
// Returns the folder that holds config.pbtxt and the model's other files.
std::string OwnFolder(const FoundModel& model);
// Returns the folder and the name in it of the file of a version, as config.pbtxt names it.
std::string FolderOf(const FoundModel& model, int64_t version);
ModelSettings SettingsOf(const FoundModel& model, ModelSettings settings);

}  // namespace reprise
