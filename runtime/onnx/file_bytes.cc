#include "runtime/onnx/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "runtime/base/aligned_buffer.h"

namespace reprise {

absl::StatusOr<FileBytes> MapFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
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
  close(fd);
  if (data == MAP_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot map '", path, "': ", std::strerror(error)));
  }
  std::shared_ptr<const void> owner(
      data, [size](const void* address) { munmap(const_cast<void*>(address), size); });
  return FileBytes{absl::string_view(static_cast<const char*>(data), size), std::move(owner),
                   /*mapped=*/true};
}

FileBytes CopyBytes(absl::string_view bytes) {
  auto buffer = std::make_shared<AlignedBuffer>(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  const char* data = reinterpret_cast<const char*>(buffer->data());
  return FileBytes{absl::string_view(data, bytes.size()), std::move(buffer), /*mapped=*/false};
}

void DropPages(const FileBytes& file, absl::string_view bytes) {
  const std::less_equal<> at_most;  // orders pointers into different objects too
  if (!file.mapped || !at_most(file.bytes.data(), bytes.data()) ||
      !at_most(bytes.data() + bytes.size(), file.bytes.data() + file.bytes.size())) {
    return;
  }
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace reprise
