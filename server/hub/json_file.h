// JSON files of a model's folder: small, read whole, and never trusted.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Returns the bytes of `path`; nullopt where there is no such file. Errors: INVALID_ARGUMENT if it
// is no file or cannot be read, RESOURCE_EXHAUSTED for more than `most_bytes`.
absl::StatusOr<std::optional<std::string>> ReadFileIfThere(const std::filesystem::path& path,
                                                           int64_t most_bytes);

// Returns the file parsed; a null value where there is no such file. Errors: also INVALID_ARGUMENT
// for invalid JSON.
absl::StatusOr<nlohmann::json> ReadJsonIfThere(const std::filesystem::path& path);

// Members of an object; `fallback` where they are absent or of another type.
std::string TextMember(const nlohmann::json& json, const char* name, absl::string_view fallback);
int64_t IntMember(const nlohmann::json& json, const char* name, int64_t fallback);
bool BoolMember(const nlohmann::json& json, const char* name, bool fallback);

}  // namespace reprise
