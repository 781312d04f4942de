#include "server/repository/repository_scan.h"

#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/hub/model_file.h"
#include "server/repository/flat_model.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.pbtxt";
// Configurations that people and generators write have kilobytes.
constexpr int64_t kMostConfigBytes = int64_t{16} << 20;

// Returns the folders in `folder`, by name, links followed; the system's iterator leaves out
// folders that cannot be read, and the attempt to open them reports it.
absl::StatusOr<std::vector<fs::path>> Folders(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (name.rfind('.', 0) != 0 && fs::is_directory(it->path(), ignored)) {
      folders.push_back(it->path());
    }
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(folder.string(), ": ", error.message()));
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Folders that are not a positive number without leading zeros are no versions.
bool ParseVersion(const std::string& name, int64_t& version) {
  return !name.empty() && name[0] >= '1' && name[0] <= '9' && absl::SimpleAtoi(name, &version);
}

// A version has a few files; if more files are kept with them, not all are watched.
constexpr int kMostStampedFiles = 4096;

void StampFile(const fs::path& path, std::string& stamp) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  const auto time = fs::last_write_time(path, error).time_since_epoch().count();
  absl::StrAppend(&stamp, path.string(), " ", size, " ", error ? 0 : time, "\n");
}

// Returns the model at `path`: a folder of versions, a flat folder, or a file. A folder that cannot
// be read is a model without versions: it is listed, and says why.
FoundModel ModelIn(const std::string& name, const fs::path& path) {
  // Protocols, metrics and reports hold UTF-8 alone.
  const bool is_named = simdjson::validate_utf8(name);
  FoundModel model = {
      .name = is_named ? name : Printable(name), .is_named = is_named, .folder = path.string()};
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    model.folder = fs::absolute(path, error).string();
    model.versions = {1};
    return model;
  }
  if (auto inner = Folders(path); inner.ok()) {
    for (const fs::path& folder : *inner) {
      int64_t version = 0;
      if (ParseVersion(folder.filename().string(), version)) model.versions.push_back(version);
    }
  }
  std::sort(model.versions.begin(), model.versions.end());
  if (!model.versions.empty()) return model;
  if (const auto file = FindModelFile(path, ""); file.ok()) {
    model.folder = fs::absolute(path / *file, error).string();
    model.versions = {1};
  }
  return model;
}

}  // namespace

std::string StampOf(const FoundModel& model, int64_t version) {
  std::string stamp;
  StampFile(fs::path(OwnFolder(model)) / kConfigFile, stamp);
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(FolderOf(model, version),
                                      fs::directory_options::follow_directory_symlink, error);
  for (;
       !error && it != fs::recursive_directory_iterator() && std::ssize(files) < kMostStampedFiles;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored)) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) StampFile(file, stamp);
  return stamp;
}

absl::StatusOr<std::vector<FoundModel>> ScanRepositories(
    const std::vector<std::string>& repositories) {
  std::vector<FoundModel> models;
  for (const std::string& repository : repositories) {
    if (const std::optional<NamedModel> named = ParseNamedModel(repository)) {
      std::error_code error;
      if (fs::exists(named->path, error)) models.push_back(ModelIn(named->name, named->path));
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<fs::path> folders, Folders(repository));
    for (const fs::path& folder : folders) {
      models.push_back(ModelIn(folder.filename().string(), folder));
    }
  }
  return models;
}

absl::StatusOr<std::string> ReadConfigFile(const FoundModel& model) {
  const fs::path path = fs::path(OwnFolder(model)) / kConfigFile;
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return std::string();
  // A pipe would be waited for, and a device has no end.
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error || !fs::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is not a readable file"));
  }
  if (bytes > kMostConfigBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path.string(), " has ", bytes, " bytes; at most ", kMostConfigBytes, " are read"));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf() || fs::file_size(path, error) == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " cannot be read"));
  }
  return text.str();
}

absl::StatusOr<std::vector<int64_t>> ChooseVersions(const inference::ModelVersionPolicy& policy,
                                                    const FoundModel& model) {
  if (model.versions.empty()) {
    return absl::NotFoundError(absl::StrCat(
        model.folder, " has no version, a folder named by a number with a model file in it, and ",
        FindModelFile(model.folder, "").status().message()));
  }
  if (policy.has_all()) return model.versions;
  if (policy.has_specific()) {
    std::vector<int64_t> chosen(policy.specific().versions().begin(),
                                policy.specific().versions().end());
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (const int64_t version : chosen) {
      if (!std::binary_search(model.versions.begin(), model.versions.end(), version)) {
        return absl::NotFoundError(absl::StrCat("config.pbtxt: version_policy.specific names ",
                                                version, ", the model has ",
                                                absl::StrJoin(model.versions, ", ")));
      }
    }
    return chosen;
  }
  const size_t count = std::min<size_t>(model.versions.size(),
                                        std::max<uint32_t>(1, policy.latest().num_versions()));
  return std::vector<int64_t>(model.versions.end() - count, model.versions.end());
}

}  // namespace reprise
