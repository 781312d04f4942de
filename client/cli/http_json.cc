#include "client/cli/http_json.h"

#include <httplib.h>

#include <chrono>

#include "absl/strings/str_cat.h"

namespace reprise::cli {
namespace {

// The words of an error in whichever form it has.
std::string WordsOf(const nlohmann::json& answer, const std::string& body) {
  const nlohmann::json* error = &answer;
  if (answer.is_object() && answer.contains("error")) error = &answer["error"];
  if (error->is_object() && error->contains("message")) error = &(*error)["message"];
  return error->is_string() ? error->get<std::string>() : body;
}

}  // namespace

absl::StatusOr<nlohmann::json> PostJson(const std::string& address, const std::string& path,
                                        const nlohmann::json& body, int64_t timeout_ms) {
  httplib::Client http("http://" + address);
  http.set_connection_timeout(2);
  http.set_read_timeout(std::chrono::milliseconds(timeout_ms));
  const auto response =
      http.Post(path, body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                "application/json");
  if (!response) {
    return absl::UnavailableError(absl::StrCat("no answer from http://", address, path, ": ",
                                               httplib::to_string(response.error())));
  }
  const nlohmann::json answer =
      nlohmann::json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (response->status == 200 && !answer.is_discarded()) return answer;
  const std::string words = absl::StrCat("http://", address, path, " answers ", response->status,
                                         ": ", WordsOf(answer, response->body));
  if (response->status == 503) return absl::UnavailableError(words);
  return absl::InvalidArgumentError(words);
}

}  // namespace reprise::cli
