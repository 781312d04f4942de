#include "tools/local_engine.h"

#include <filesystem>

namespace reprise::cli {

absl::StatusOr<std::shared_ptr<Model>> LocalEngine::LoadToStudy(const std::string& path,
                                                                Precision precision) {
  return engine.Load({.id = {.name = std::filesystem::path(path).filename().string()},
                      .path = path,
                      .packing = PackingMode::kAuto,
                      .precision = precision,
                      .confirm_padding_later = true});
}

}  // namespace reprise::cli
