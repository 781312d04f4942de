// What a client compressed on its way.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

// `body` as it was before `encoding`, a value of Content-Encoding: gzip or deflate. Errors:
// UNIMPLEMENTED for another encoding, INVALID_ARGUMENT for bytes that are not of it,
// RESOURCE_EXHAUSTED for more than `max_bytes`, of which no more are made.
absl::StatusOr<std::string> Inflate(absl::string_view encoding, absl::string_view body,
                                    int64_t max_bytes);

}  // namespace reprise
