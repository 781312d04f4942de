// Values that gRPC writes as text: deadlines, messages of errors, binary metadata.
// Format: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// Returns the value of grpc-timeout: at most eight digits and a unit (H, M, S, m, u, n).
// nullopt: it is none.
std::optional<std::chrono::nanoseconds> ParseGrpcTimeout(absl::string_view text);

// Returns the value of grpc-message: bytes that are not printable ASCII, and percent signs, as %XX.
std::string PercentEncoded(absl::string_view text);

// Returns whether it is a content type of gRPC: application/grpc, with a suffix or parameters.
bool IsGrpcContent(absl::string_view content_type);

// Returns whether it belongs to HTTP/2 and gRPC themselves: they are no metadata of a call.
bool IsReservedField(absl::string_view name);

// Returns the value of metadata whose name ends in "-bin"; nullopt: it is no base64.
std::optional<std::string> DecodeBinaryField(absl::string_view value);

}  // namespace reprise
