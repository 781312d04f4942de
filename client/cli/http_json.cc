#include "client/cli/http_json.h"

#include <httplib.h>

#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"

namespace reprise::cli {
namespace {

// Returns the words of an error in whichever form it has.
std::string WordsOf(const nlohmann::json& answer, const std::string& body) {
  const nlohmann::json* error = &answer;
  if (answer.is_object() && answer.contains("error")) error = &answer["error"];
  if (error->is_object() && error->contains("message")) error = &(*error)["message"];
  return error->is_string() ? error->get<std::string>() : body;
}

// Returns a client for the target; `server` becomes its address.
httplib::Client ClientOf(const HttpTarget& target, std::string& server) {
  server = absl::StrCat(target.tls.on() ? "https://" : "http://", target.address);
  httplib::Client http(server, target.tls.cert, target.tls.key);
  if (!target.tls.ca.empty()) http.set_ca_cert_path(target.tls.ca);
  http.set_connection_timeout(2);
  http.set_read_timeout(std::chrono::milliseconds(target.timeout_ms));
  return http;
}

httplib::Headers KeyHeader() {
  httplib::Headers headers;
  if (const std::string key = ApiKey(); !key.empty()) headers.emplace("x-api-key", key);
  return headers;
}

std::string BodyOf(const nlohmann::json& body) {
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::Status NoAnswer(const std::string& server, const std::string& path, httplib::Error error) {
  return absl::UnavailableError(
      absl::StrCat("no answer from ", server, path, ": ", httplib::to_string(error)));
}

// Returns the error of a reply that is not 200.
absl::Status Refusal(const std::string& server, const std::string& path, int status,
                     const std::string& body) {
  const nlohmann::json answer = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const std::string words =
      absl::StrCat(server, path, " answers ", status, ": ", WordsOf(answer, body));
  if (status == 401) return absl::UnauthenticatedError(words);
  return status == 503 ? absl::UnavailableError(words) : absl::InvalidArgumentError(words);
}

// Sends a request by `ask`, and reads its answer.
template <typename Ask>
absl::StatusOr<nlohmann::json> Exchange(const HttpTarget& target, const std::string& path,
                                        Ask ask) {
  std::string server;
  httplib::Client http = ClientOf(target, server);
  const auto response = ask(http, KeyHeader());
  if (!response) return NoAnswer(server, path, response.error());
  nlohmann::json answer =
      nlohmann::json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (response->status == 200 && !answer.is_discarded()) return answer;
  return Refusal(server, path, response->status, response->body);
}

}  // namespace

absl::StatusOr<nlohmann::json> PostJson(const HttpTarget& target, const std::string& path,
                                        const nlohmann::json& body) {
  return Exchange(target, path, [&](httplib::Client& http, const httplib::Headers& headers) {
    return http.Post(path, headers, BodyOf(body), "application/json");
  });
}

absl::StatusOr<nlohmann::json> GetJson(const HttpTarget& target, const std::string& path) {
  return Exchange(target, path, [&](httplib::Client& http, const httplib::Headers& headers) {
    return http.Get(path, headers);
  });
}

absl::Status PostForEvents(const HttpTarget& target, const std::string& path,
                           const nlohmann::json& body,
                           const std::function<bool(const std::string& data)>& on_event) {
  std::string server, held;
  httplib::Client http = ClientOf(target, server);
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.headers = KeyHeader();
  request.headers.emplace("Content-Type", "application/json");
  request.body = BodyOf(body);
  bool left = false;
  int status = 0;
  request.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    return true;
  };
  request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    held.append(data, size);
    for (size_t end = 0;
         status == 200 && !left && (end = held.find("\n\n")) != std::string::npos;) {
      const std::string event = held.substr(0, end);
      held.erase(0, end + 2);
      if (absl::StartsWith(event, "data: ")) left = !on_event(event.substr(6));
    }
    return !left;
  };
  const auto response = http.send(request);
  if (left) return absl::OkStatus();
  if (!response) return NoAnswer(server, path, response.error());
  return status == 200 ? absl::OkStatus() : Refusal(server, path, status, held);
}

}  // namespace reprise::cli
