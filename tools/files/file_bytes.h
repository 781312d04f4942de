// Helpers of the readers of files: the largest file, whole files, numbers in their bytes, refusals.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise::cli {

// Larger files are refused.
inline constexpr int64_t kMostFileBytes = int64_t{1} << 31;

// Returns the bytes of the file at `path`; NOT_FOUND if it cannot be read.
absl::StatusOr<std::string> ReadText(const std::string& path);

// Returns the unsigned number that `bytes` (at most 8) hold, the lowest byte first.
uint64_t LittleEndian(absl::string_view bytes);

// Returns INVALID_ARGUMENT: "'name' what".
absl::Status BadFile(const std::string& name, absl::string_view what);

}  // namespace reprise::cli
