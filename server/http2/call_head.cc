#include "server/http2/call_head.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http2/grpc_text.h"

namespace reprise {
namespace {

// Later deadlines are none.
constexpr std::chrono::hours kForever(24 * 365);

}  // namespace

absl::Status ReadCallHead(std::vector<std::pair<std::string, std::string>> fields,
                          std::chrono::steady_clock::time_point opened, CallHead& head,
                          std::string& encoding) {
  for (auto& [name, value] : fields) {
    absl::StripAsciiWhitespace(&value);
    if (name == ":path") {
      head.path = std::move(value);
    } else if (name == "grpc-timeout") {
      const auto timeout = ParseGrpcTimeout(value);
      if (!timeout.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat("grpc-timeout is \"", value, "\""));
      }
      if (*timeout < kForever) head.deadline = opened + *timeout;
    } else if (name == "grpc-encoding") {
      encoding = std::move(value);
      if (encoding != "identity" && encoding != "gzip" && encoding != "deflate") {
        return absl::UnimplementedError(
            absl::StrCat("grpc-encoding is ", encoding, ", supported are ", kGrpcEncodings));
      }
    } else if (!IsReservedField(name)) {
      if (absl::EndsWith(name, "-bin")) {
        std::optional<std::string> decoded = DecodeBinaryField(value);
        if (!decoded.has_value()) {
          return absl::InvalidArgumentError(absl::StrCat("metadata ", name, " is not base64"));
        }
        value = *std::move(decoded);
      }
      head.fields.emplace_back(std::move(name), std::move(value));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
