#include "tools/local_engine.h"

#include <filesystem>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/onnx/importer.h"
#include "runtime/onnx/usual_ranks.h"

namespace reprise::cli {

absl::StatusOr<std::shared_ptr<Model>> LocalEngine::Load(ModelOptions options) {
  // The load explains why it cannot be read.
  const absl::StatusOr<std::vector<std::string>> without = InputsWithoutRank(options.path);
  std::vector<std::string> open;
  if (without.ok()) {
    for (const std::string& name : *without) {
      if (!options.ranks.contains(name)) open.push_back(name);
    }
  }
  std::shared_ptr<Model> model;
  RETURN_IF_ERROR(AtUsualRanks(open, [&](const InputRanks& ranks) -> absl::Status {
    ModelOptions at_ranks = options;
    at_ranks.ranks.insert(ranks.begin(), ranks.end());
    ASSIGN_OR_RETURN(model, engine.Load(std::move(at_ranks)));
    return absl::OkStatus();
  }));
  return model;
}

absl::StatusOr<std::shared_ptr<Model>> LocalEngine::LoadToStudy(const std::string& path,
                                                                Precision precision) {
  return Load({.id = {.name = std::filesystem::path(path).filename().string()},
               .path = path,
               .packing = PackingMode::kAuto,
               .precision = precision});
}

}  // namespace reprise::cli
