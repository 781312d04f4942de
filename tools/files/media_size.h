// MediaSizeOf: the size of a sound or a picture, from the header of its file alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise::cli {

// Returns of a WAV file: {samples}; PNG and JPEG: {height, width}; nullopt where the file is none
// of these. INVALID_ARGUMENT where it is one and its header is cut short or says nothing.
absl::StatusOr<std::optional<std::vector<int64_t>>> MediaSizeOf(const std::string& path);

// Returns the same of the first bytes of a file, which has `file_bytes` in all; `name` is for
// errors.
absl::StatusOr<std::optional<std::vector<int64_t>>> ParseMediaSize(absl::string_view head,
                                                                   int64_t file_bytes,
                                                                   const std::string& name);

}  // namespace reprise::cli
