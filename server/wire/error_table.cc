#include "server/wire/error_table.h"

#include <cstddef>

#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

constexpr ErrorRow kErrorRows[] = {
    {absl::StatusCode::kInternal, "INTERNAL", 13, 500},  // the first row stands for all others
    {absl::StatusCode::kOk, "OK", 0, 200},
    {absl::StatusCode::kCancelled, "CANCELLED", 1, 499},
    {absl::StatusCode::kInvalidArgument, "INVALID_ARGUMENT", 3, 400},
    {absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED", 4, 504},
    {absl::StatusCode::kUnauthenticated, "UNAUTHENTICATED", 16, 401},
    {absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED", 7, 403},
    {absl::StatusCode::kNotFound, "NOT_FOUND", 5, 404},
    {absl::StatusCode::kAlreadyExists, "ALREADY_EXISTS", 6, 409},
    {absl::StatusCode::kResourceExhausted, "RESOURCE_EXHAUSTED", 8, 429},
    {absl::StatusCode::kOutOfRange, "OUT_OF_RANGE", 11, 400},
    {absl::StatusCode::kFailedPrecondition, "FAILED_PRECONDITION", 9, 400},
    {absl::StatusCode::kUnimplemented, "UNIMPLEMENTED", 12, 501},
    {absl::StatusCode::kUnavailable, "UNAVAILABLE", 14, 503},
};

// Clients bound trailers at 8 KiB, and percent-encoding can triple a byte.
constexpr size_t kLongestMessage = 2048;

}  // namespace

const ErrorRow& ErrorRowOf(absl::StatusCode code) {
  for (const ErrorRow& row : kErrorRows) {
    if (row.code == code) return row;
  }
  return kErrorRows[0];
}

std::string ErrorMessage(const absl::Status& status) {
  return ShownText(status.message(), kLongestMessage);
}

}  // namespace reprise
