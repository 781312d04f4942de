#include "server/http/openai_error.h"

#include "absl/strings/match.h"

namespace reprise {
namespace {

constexpr char kInvalid[] = "invalid_request_error";
constexpr char kServer[] = "server_error";

// THE table of types and codes.
constexpr OpenAiError kErrors[] = {
    {401, kInvalid, "invalid_api_key"},
    {403, kInvalid, "insufficient_permissions"},
    {404, kInvalid, "not_found"},
    {405, kInvalid, "method_not_supported"},
    {413, kInvalid, "request_too_large"},
    {415, kInvalid, "unsupported_media_type"},
    {429, "rate_limit_error", "resource_exhausted"},
    {501, kInvalid, nullptr},
    {503, kServer, "unavailable"},
    {504, kServer, "deadline_exceeded"},
};
constexpr OpenAiError kOtherOfClient = {400, kInvalid, nullptr};
constexpr OpenAiError kOtherOfServer = {500, kServer, nullptr};

}  // namespace

bool IsOpenAiPath(const RequestPath& path) {
  const auto& segments = path.segments();
  const size_t at = segments.size() > 2 && segments[0] == "models" ? 2 : 0;
  return segments.size() > at && segments[at] == "v1" &&
         !absl::EndsWith(segments.back(), ":predict");
}

const OpenAiError& OpenAiErrorOf(int status) {
  for (const OpenAiError& error : kErrors) {
    if (error.status == status) return error;
  }
  return status < 500 ? kOtherOfClient : kOtherOfServer;
}

}  // namespace reprise
