// FileBytes: the bytes of a file, mapped read-only and shared.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct FileBytes {
  absl::string_view bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive
  bool mapped = false;                // pages come from a file and may be dropped
};

// NOT_FOUND or INVALID_ARGUMENT naming the path.
absl::StatusOr<FileBytes> MapFile(const std::string& path);

// A 64-byte aligned copy of `bytes`.
FileBytes CopyBytes(absl::string_view bytes);

// The whole pages inside `bytes` may leave memory until they are read again: what was copied out of
// a mapping should not count twice. Nothing happens where `bytes` is not inside `file`, or `file`
// no mapping.
void DropPages(const FileBytes& file, absl::string_view bytes);

}  // namespace reprise
