// The files of a model's folder that its precision is set by: lists of nodes, and requests that the
// nodes which round are chosen with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/tensor.h"
#include "runtime/onnx/model_io.h"
#include "runtime/passes/kit/precision_rules.h"
#include "server/config/model_settings.h"
#include "server/hub/load_texts.h"

namespace reprise {

// Where the files lie: with the file of the version, which counts first, or in the model's folder.
struct PrecisionFolders {
  std::filesystem::path version;
  std::filesystem::path model;
};

// Returns the rules of reprise.precision_ops. Errors name the parameter, and the entry or the file.
absl::StatusOr<PrecisionRules> PrecisionRulesOf(const PrecisionFolders& folders,
                                                const ModelSettings& settings);

// Returns the requests of the file that reprise.calibration names: a tensor for each of `inputs`,
// by line of the file. A line that begins with '{' is a JSON object with the lists of each input by
// name; any other is a text, of which `texts` makes the inputs (caches of a decoder are empty).
// Empty lines do not count. Errors name the parameter, the file, the line and its fault:
// INVALID_ARGUMENT, or NOT_FOUND where there is no such file.
absl::StatusOr<std::vector<std::vector<Tensor>>> CalibrationRequests(
    const PrecisionFolders& folders, const std::string& file, const std::vector<ModelIo>& inputs,
    const TextLoad& texts);

// Returns requests made of usual texts, short and long, for a model without such a file; none where
// it takes no texts.
std::vector<std::vector<Tensor>> UsualRequests(const std::vector<ModelIo>& inputs,
                                               const TextLoad& texts);

}  // namespace reprise
