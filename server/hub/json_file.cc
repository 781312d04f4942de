#include "server/hub/json_file.h"

#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostJsonBytes = int64_t{64} << 20;

}  // namespace

absl::StatusOr<std::optional<std::string>> ReadFileIfThere(const fs::path& path,
                                                           int64_t most_bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  // A pipe would be waited for, and a device has no end.
  if (!fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is not a file"));
  }
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": ", error.message()));
  }
  if (bytes > most_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path.string(), " has ", bytes, " bytes, the limit is ", most_bytes));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || (bytes > 0 && !(text << file.rdbuf()))) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " cannot be read"));
  }
  return text.str();
}

absl::StatusOr<nlohmann::json> ReadJsonIfThere(const fs::path& path) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadFileIfThere(path, kMostJsonBytes));
  if (!text.has_value()) return nlohmann::json();
  nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is not JSON"));
  }
  return json;
}

std::string TextMember(const nlohmann::json& json, const char* name, absl::string_view fallback) {
  const auto it = json.is_object() ? json.find(name) : json.end();
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string(fallback);
}

int64_t IntMember(const nlohmann::json& json, const char* name, int64_t fallback) {
  const auto it = json.is_object() ? json.find(name) : json.end();
  if (it == json.end()) return fallback;
  if (it->is_number_integer()) return it->get<int64_t>();
  // "model_max_length" is 1e30 where it was not set.
  if (it->is_number_float() && it->get<double>() < 1e15 && it->get<double>() > -1e15) {
    return static_cast<int64_t>(it->get<double>());
  }
  return fallback;
}

bool BoolMember(const nlohmann::json& json, const char* name, bool fallback) {
  const auto it = json.is_object() ? json.find(name) : json.end();
  return it != json.end() && it->is_boolean() ? it->get<bool>() : fallback;
}

}  // namespace reprise
