#include "server/http/http_message.h"

#include <nlohmann/json.hpp>

#include "server/http/openai_error.h"

namespace reprise {

absl::string_view HttpRequest::Field(absl::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return "";
}

namespace {

HttpReply JsonErrorReply(int status, const nlohmann::ordered_json& error, absl::string_view why,
                         HttpFields fields) {
  const nlohmann::ordered_json body = {{"error", error}};
  // Names in messages come from clients and files: bytes that are no UTF-8 are replaced.
  return {.status = status,
          .content_type = "application/json",
          .fields = std::move(fields),
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
          .why = std::string(why)};
}

}  // namespace

HttpReply ErrorReply(int status, absl::string_view why, HttpFields fields) {
  return JsonErrorReply(status, std::string(why), why, std::move(fields));
}

HttpReply ErrorReply(const RequestPath& path, int status, absl::string_view why,
                     HttpFields fields) {
  if (!IsOpenAiPath(path)) return ErrorReply(status, why, std::move(fields));
  const OpenAiError& error = OpenAiErrorOf(status);
  nlohmann::ordered_json code;
  if (error.code != nullptr) code = error.code;
  return JsonErrorReply(status,
                        {{"message", std::string(why)},
                         {"type", error.type},
                         {"param", nullptr},
                         {"code", std::move(code)}},
                        why, std::move(fields));
}

}  // namespace reprise
