// JSON to a path of a server's HTTP port, and its JSON answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace reprise::cli {

// `address` is HOST:PORT. Errors: UNAVAILABLE where no server answers, INVALID_ARGUMENT with the
// server's own words where it refuses.
absl::StatusOr<nlohmann::json> PostJson(const std::string& address, const std::string& path,
                                        const nlohmann::json& body, int64_t timeout_ms);

}  // namespace reprise::cli
