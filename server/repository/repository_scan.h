// Finding models on disk: <repository>/<model>/<version>/model.onnx and <model>/config.pbtxt.
// Symbolic links are followed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/model_settings.h"

namespace reprise {

struct FoundModel {
  std::string name;
  bool is_named = true;  // false: the name on disk is not UTF-8, and `name` shows its bytes
  std::string folder;
  std::vector<int64_t> versions;  // named by folders whose name is a number, ascending
};

// Returns every folder of the repositories, by name; names that start with a dot are none. A model
// that is in two repositories is found twice. Errors: NOT_FOUND when a repository cannot be read.
absl::StatusOr<std::vector<FoundModel>> ScanRepositories(
    const std::vector<std::string>& repositories);

// Returns the config of a model; the empty string if there is no file. Errors: failures to read it.
absl::StatusOr<std::string> ReadConfigFile(const FoundModel& model);

// Returns the versions that the policy serves, ascending; the latest one without a policy.
// Errors: NOT_FOUND naming the version that is missing, or that there is none.
absl::StatusOr<std::vector<int64_t>> ChooseVersions(const inference::ModelVersionPolicy& policy,
                                                    const FoundModel& model);

// Returns a text that changes when the files of a version, or its config, do: names, sizes and
// times. Files that links lead to count, not the links.
std::string StampOf(const FoundModel& model, int64_t version);

}  // namespace reprise
