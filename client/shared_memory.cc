#include "client/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::client {
namespace {

absl::Status ErrorOf(const std::string& key, size_t bytes, const char* call, int code) {
  return absl::ErrnoToStatus(
      code, absl::StrCat("shared memory '", key, "' of ", bytes, " bytes: ", call));
}

}  // namespace

absl::StatusOr<SharedMemory> SharedMemory::Create(std::string key, size_t bytes) {
  if (bytes == 0 || bytes > static_cast<size_t>(std::numeric_limits<off_t>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory '", key, "': it cannot have ", bytes, " bytes"));
  }
  const int file = shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return ErrorOf(key, bytes, "shm_open", errno);
  // Pages that cannot be had would end the program when they are touched.
  int error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  const char* call = "posix_fallocate";
  void* data = MAP_FAILED;
  if (error == 0) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) error = errno;
    call = "mmap";
  }
  close(file);
  if (data == MAP_FAILED) {
    shm_unlink(key.c_str());
    return ErrorOf(key, bytes, call, error);
  }
  return SharedMemory(std::move(key), {static_cast<std::byte*>(data), bytes});
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this == &other) return *this;
  Release();
  key_ = std::exchange(other.key_, "");
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

SharedMemory::~SharedMemory() { Release(); }

absl::Status SharedMemory::CheckRange(size_t offset, size_t count, size_t element_bytes) const {
  if (offset % element_bytes == 0 && offset <= bytes_.size() &&
      count <= (bytes_.size() - offset) / element_bytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(count, " elements of ", element_bytes,
                                                 " bytes at byte ", offset, " of shared memory '",
                                                 key_, "', which has ", bytes_.size(), " bytes"));
}

void SharedMemory::Release() {
  if (key_.empty()) return;
  munmap(bytes_.data(), bytes_.size());
  shm_unlink(key_.c_str());
}

}  // namespace reprise::client
