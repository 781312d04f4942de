// JSON to a path of a server's HTTP port, and its JSON answer.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/tls_flags.h"

namespace reprise::cli {

struct HttpTarget {
  std::string address = "localhost:8000";  // HOST:PORT
  TlsFlags tls;
  int64_t timeout_ms = 30'000;
};

// Sends the key of $REPRISE_API_KEY along. Errors: UNAVAILABLE where no server answers,
// UNAUTHENTICATED and INVALID_ARGUMENT with the server's own words where it refuses.
absl::StatusOr<nlohmann::json> PostJson(const HttpTarget& target, const std::string& path,
                                        const nlohmann::json& body);
// Returns the same with GET, for resources to read.
absl::StatusOr<nlohmann::json> GetJson(const HttpTarget& target, const std::string& path);

// Posts for an answer that is a stream of events: `on_event` gets the data of each, and returns
// false to leave the stream.
absl::Status PostForEvents(const HttpTarget& target, const std::string& path,
                           const nlohmann::json& body,
                           const std::function<bool(const std::string& data)>& on_event);

}  // namespace reprise::cli
