#include "server/http/http_message.h"

#include <nlohmann/json.hpp>

namespace reprise {

absl::string_view HttpRequest::Field(absl::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return "";
}

HttpReply ErrorReply(int status, absl::string_view why, HttpFields fields) {
  // Names in messages come from clients and files: bytes that are no UTF-8 are replaced.
  const nlohmann::json body = {{"error", std::string(why)}};
  return {.status = status,
          .content_type = "application/json",
          .fields = std::move(fields),
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace reprise
