// THE table of errors: each of our statuses over gRPC, over HTTP, and in metrics.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct ErrorRow {
  absl::StatusCode code;
  absl::string_view name;  // "INVALID_ARGUMENT"
  int grpc;                // grpc::StatusCode
  int http;
};

// Codes that the server does not use on purpose are INTERNAL: a bug.
const ErrorRow& ErrorRowOf(absl::StatusCode code);

// Returns the message in printable characters, cut to fit the trailers of a reply.
std::string ErrorMessage(const absl::Status& status);

}  // namespace reprise
