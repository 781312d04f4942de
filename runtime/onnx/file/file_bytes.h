// FileBytes: the bytes of a file, mapped read-only and shared.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file_faults.h"

namespace reprise {

// MappedFile: the pages of a file, which others may change or cut while they are read.
//
// Threads: any.
class MappedFile {
 public:
  // `samples`: SamplesOf of the file.
  MappedFile(std::string path, const struct stat& info, uint64_t samples, void* data);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // DATA_LOSS once a page was not there any more, or LookAgain saw a change. A few nanoseconds.
  absl::Status Intact() const;
  // Checks again, after another stat() of the file. OK if its size and time of change are still the
  // mapped ones, if only its time differs and samples of its contents do not, or if another file
  // has its name, so that this one no longer matters. A microsecond; after a change a hundred.
  absl::Status LookAgain() const;

 private:
  const std::string path_;
  const uint64_t device_;
  const uint64_t node_;
  const int64_t bytes_;
  const uint64_t samples_;
  mutable std::atomic<int64_t> changed_ns_;
  void* const data_;
  std::optional<WatchedPages> watched_;  // held until they are unmapped
  mutable std::atomic<bool> changed_{false};
};

struct FileBytes {
  absl::string_view bytes;
  std::shared_ptr<const void> owner;       // keeps `bytes` alive
  std::shared_ptr<const MappedFile> file;  // owner of the pages, which may be dropped; or null
  bool mapped() const { return file != nullptr; }
};

// NOT_FOUND or INVALID_ARGUMENT naming the path.
absl::StatusOr<FileBytes> MapFile(const std::string& path);

// Returns a 64-byte aligned copy of `bytes`.
FileBytes CopyBytes(absl::string_view bytes);

// Lets the whole pages inside `bytes` leave memory until they are read again: bytes that were
// copied out of a mapping should not count twice. Does nothing where `bytes` is not inside `file`,
// or `file` no mapping.
void DropPages(const FileBytes& file, absl::string_view bytes);

}  // namespace reprise
