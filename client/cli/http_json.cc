#include "client/cli/http_json.h"

#include <httplib.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"

namespace reprise::cli {
namespace {

// The words of an error in whichever form it has.
std::string WordsOf(const nlohmann::json& answer, const std::string& body) {
  const nlohmann::json* error = &answer;
  if (answer.is_object() && answer.contains("error")) error = &answer["error"];
  if (error->is_object() && error->contains("message")) error = &(*error)["message"];
  return error->is_string() ? error->get<std::string>() : body;
}

// Sends a request by `ask`, and reads its answer.
template <typename Ask>
absl::StatusOr<nlohmann::json> Exchange(const HttpTarget& target, const std::string& path,
                                        Ask ask) {
  const std::string server = absl::StrCat(target.tls.on() ? "https://" : "http://", target.address);
  httplib::Client http(server, target.tls.cert, target.tls.key);
  if (!target.tls.ca.empty()) http.set_ca_cert_path(target.tls.ca);
  http.set_connection_timeout(2);
  http.set_read_timeout(std::chrono::milliseconds(target.timeout_ms));
  httplib::Headers headers;
  if (const std::string key = ApiKey(); !key.empty()) headers.emplace("x-api-key", key);
  const auto response = ask(http, headers);
  if (!response) {
    return absl::UnavailableError(
        absl::StrCat("no answer from ", server, path, ": ", httplib::to_string(response.error())));
  }
  const nlohmann::json answer =
      nlohmann::json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (response->status == 200 && !answer.is_discarded()) return answer;
  const std::string words = absl::StrCat(server, path, " answers ", response->status, ": ",
                                         WordsOf(answer, response->body));
  if (response->status == 503) return absl::UnavailableError(words);
  return absl::InvalidArgumentError(words);
}

}  // namespace

absl::StatusOr<nlohmann::json> PostJson(const HttpTarget& target, const std::string& path,
                                        const nlohmann::json& body) {
  const std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Exchange(target, path, [&](httplib::Client& http, const httplib::Headers& headers) {
    return http.Post(path, headers, text, "application/json");
  });
}

absl::StatusOr<nlohmann::json> GetJson(const HttpTarget& target, const std::string& path) {
  return Exchange(target, path, [&](httplib::Client& http, const httplib::Headers& headers) {
    return http.Get(path, headers);
  });
}

}  // namespace reprise::cli
