#include "server/config/flag_checks.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/ranks/rank_socket.h"
#include "server/config/options.h"

namespace reprise {

std::string TroubleOfModel(std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return absl::StrCat(text, " is not NAME=PATH");
  if (text.substr(0, equals).find('/') != std::string::npos) {
    return absl::StrCat(text, ": a name has no '/'");
  }
  // A place elsewhere, which main judges.
  if (absl::StrContains(text.substr(equals + 1), "://")) return "";
  std::error_code error;
  if (std::filesystem::exists(text.substr(equals + 1), error)) return "";
  return absl::StrCat("Path does not exist: ", text.substr(equals + 1));
}

std::string TroubleOfEndpoint(std::string& text) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (absl::StartsWith(text, scheme) && text.size() > scheme.size()) return "";
  }
  return absl::StrCat(text, " is not the address of a collector: http://HOST:4318");
}

absl::StatusOr<Endpoint> Endpoint::Parse(absl::string_view text) {
  const absl::Status refused =
      absl::InvalidArgumentError(absl::StrCat(text, " is not ADDRESS:PORT"));
  const size_t colon = text.rfind(':');
  Endpoint endpoint;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &endpoint.port) || endpoint.port < 0 ||
      endpoint.port > 65535) {
    return refused;
  }
  absl::string_view address = text.substr(0, colon);
  if (absl::ConsumePrefix(&address, "[") && !absl::ConsumeSuffix(&address, "]")) return refused;
  endpoint.address = std::string(address);
  return endpoint;
}

std::string TroubleOfRankAddress(std::string& text) {
  return std::string(RankAddress::Parse(text).status().message());
}

std::string TroubleOfInstance(std::string& text) {
  const bool fits =
      !text.empty() && text.size() <= 256 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  return fits ? "" : "a name of 1 to 256 visible ASCII characters is needed";
}

}  // namespace reprise
