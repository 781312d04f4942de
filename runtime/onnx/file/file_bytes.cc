#include "runtime/onnx/file/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/hash64.h"
#include "runtime/base/memory_net.h"

namespace reprise {
namespace {

int64_t ChangedNs(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Hash of pieces of a file of `bytes` bytes, spread over all of it: weights that are others differ
// in most of them. Read, not mapped, so that no page of a mapping is there for it.
uint64_t SamplesOf(int fd, int64_t bytes) {
  constexpr int64_t kPieces = 64, kPieceBytes = 2048;
  uint64_t hash = static_cast<uint64_t>(bytes);
  char piece[kPieceBytes];
  for (int64_t i = 0; i < kPieces; ++i) {
    const int64_t at = std::max<int64_t>(bytes - kPieceBytes, 0) * i / (kPieces - 1);
    const ssize_t got = pread(fd, piece, kPieceBytes, at);
    hash = Hash64({piece, static_cast<size_t>(std::max<ssize_t>(got, 0))}, hash);
  }
  return hash;
}

uint64_t SamplesOf(const std::string& path, int64_t bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  const uint64_t samples = SamplesOf(fd, bytes);
  close(fd);
  return samples;
}

}  // namespace

MappedFile::MappedFile(std::string path, const struct stat& info, uint64_t samples, void* data)
    : path_(std::move(path)),
      device_(info.st_dev),
      node_(info.st_ino),
      bytes_(info.st_size),
      samples_(samples),
      changed_ns_(ChangedNs(info)),
      data_(data) {
  watched_.emplace(data, static_cast<size_t>(info.st_size));
}

MappedFile::~MappedFile() {
  watched_.reset();
  munmap(data_, static_cast<size_t>(bytes_));
}

absl::Status MappedFile::Intact() const {
  if (!watched_->lost() && !changed_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "'", path_, "', of ", bytes_, " bytes when it was loaded, was changed in place: put ",
      "another file in its place by renaming it, and load the model again"));
}

absl::Status MappedFile::LookAgain() const {
  struct stat info = {};
  const bool is_ours =
      stat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == node_;
  if (!is_ours || (info.st_size == bytes_ && ChangedNs(info) == changed_ns_)) return Intact();
  // Some file systems round times later on, and people touch files.
  if (info.st_size == bytes_ && SamplesOf(path_, bytes_) == samples_) {
    changed_ns_ = ChangedNs(info);
  } else {
    changed_ = true;
  }
  return Intact();
}

absl::StatusOr<FileBytes> MapFile(const std::string& path) {
  // O_NONBLOCK: does not wait for the writer of a pipe; other files ignore it.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    const std::string message = absl::StrCat("cannot open '", path, "': ", std::strerror(error));
    if (error == ENOENT) return absl::NotFoundError(message);
    return absl::InvalidArgumentError(message);
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    close(fd);
    return FileBytes{};
  }
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  const uint64_t samples = data == MAP_FAILED ? 0 : SamplesOf(fd, info.st_size);
  close(fd);
  if (data == MAP_FAILED) {
    if (error == ENOMEM) return NoMemoryStatus(absl::StrCat("mapping '", path, "'"), size);
    return absl::InvalidArgumentError(
        absl::StrCat("cannot map '", path, "': ", std::strerror(error)));
  }
  auto mapped = std::make_shared<const MappedFile>(path, info, samples, data);
  return FileBytes{absl::string_view(static_cast<const char*>(data), size), mapped, mapped};
}

FileBytes CopyBytes(absl::string_view bytes) {
  auto buffer = std::make_shared<AlignedBuffer>(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  const char* data = reinterpret_cast<const char*>(buffer->data());
  return FileBytes{absl::string_view(data, bytes.size()), std::move(buffer), nullptr};
}

void DropPages(const FileBytes& file, absl::string_view bytes) {
  const std::less_equal<> at_most;  // orders pointers into different objects too
  if (!file.mapped() || !at_most(file.bytes.data(), bytes.data()) ||
      !at_most(bytes.data() + bytes.size(), file.bytes.data() + file.bytes.size())) {
    return;
  }
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace reprise
