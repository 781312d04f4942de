#include "server/repository/flat_model.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/model_url.h"
#include "server/hub/model_file.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::optional<NamedModel> ParseNamedModel(absl::string_view repository) {
  const size_t equals = repository.find('=');
  if (equals == absl::string_view::npos || equals == 0) return std::nullopt;
  std::error_code error;
  if (fs::is_directory(fs::path(std::string(repository)), error)) return std::nullopt;
  const std::string name(repository.substr(0, equals));
  if (name.find('/') != std::string::npos) return std::nullopt;
  return NamedModel{.name = name, .path = std::string(repository.substr(equals + 1))};
}

absl::Status ChooseVariant(const std::string& variant, std::vector<std::string>& repositories) {
  for (std::string& repository : repositories) {
    const std::optional<NamedModel> model = ParseNamedModel(repository);
    std::error_code error;
    if (model.has_value() && ModelUrl::IsUrl(model->path)) {
      RETURN_IF_ERROR(ModelUrl::Parse(model->path).status());
      continue;
    }
    if (!model || !fs::is_directory(model->path, error) || !IsFlatFolder(model->path)) continue;
    ASSIGN_OR_RETURN(const std::string file, FindModelFile(model->path, variant));
    repository = absl::StrCat(model->name, "=", (fs::path(model->path) / file).string());
  }
  return absl::OkStatus();
}

bool IsFlat(const FoundModel& model) {
  std::error_code error;
  return fs::is_regular_file(model.folder, error);
}

std::string OwnFolder(const FoundModel& model) {
  if (!IsFlat(model)) return model.folder;
  const fs::path folder = fs::path(model.folder).parent_path();
  return (folder.filename() == "onnx" ? folder.parent_path() : folder).string();
}

std::string FolderOf(const FoundModel& model, int64_t version) {
  if (IsFlat(model)) return OwnFolder(model);
  return (fs::path(model.folder) / absl::StrCat(version)).string();
}

ModelSettings SettingsOf(const FoundModel& model, ModelSettings settings) {
  if (IsFlat(model) && settings.config.default_model_filename().empty()) {
    settings.model_filename = fs::path(model.folder).lexically_relative(OwnFolder(model)).string();
  }
  return settings;
}

}  // namespace reprise
