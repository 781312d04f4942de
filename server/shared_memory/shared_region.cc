#include "server/shared_memory/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

std::string Named(const RegionInfo& info) {
  return absl::StrCat("shared memory region ", QuotedText(info.name), " (key ",
                      QuotedText(info.key), ")");
}

absl::Status SystemError(const RegionInfo& info, absl::string_view what, int error) {
  const std::string text = absl::StrCat(Named(info), ": ", what, ": ", strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InvalidArgumentError(text);
  }
}

// Checks the key: it names an object, never a path: '/' is in front of it alone.
absl::Status CheckKey(const RegionInfo& info) {
  absl::string_view name = info.key;
  while (absl::ConsumePrefix(&name, "/")) {
  }
  const bool fits = !name.empty() && name != "." && name != ".." && name.size() <= NAME_MAX &&
                    name.find('/') == name.npos && name.find('\0') == name.npos;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Named(info),
      ": the key is not a name of shared memory, which is \"/name\" without another '/'"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Open(RegionInfo info) {
  RETURN_IF_ERROR(CheckKey(info));
  int64_t end = 0;
  if (info.offset < 0 || info.bytes <= 0 || __builtin_add_overflow(info.offset, info.bytes, &end)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(info), ": offset is ", info.offset, ", byte_size is ", info.bytes));
  }
  const int descriptor = shm_open(info.key.c_str(), O_RDWR, 0);
  if (descriptor < 0) return SystemError(info, "it cannot be opened", errno);
  const std::shared_ptr<SharedRegion> region(new SharedRegion(std::move(info), descriptor));
  ASSIGN_OR_RETURN(const int64_t there, region->ObjectBytes());
  if (there < end) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(region->info_), ": it has ", there, " bytes, offset ",
                     region->info_.offset, " and byte_size ", region->info_.bytes, " need ", end));
  }
  return region;
}

SharedRegion::~SharedRegion() { close(descriptor_); }

absl::StatusOr<int64_t> SharedRegion::ObjectBytes() const {
  struct stat status = {};
  if (fstat(descriptor_, &status) != 0) return SystemError(info_, "it cannot be read", errno);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(Named(info_), ": it is not shared memory"));
  }
  return int64_t{status.st_size};
}

absl::Status SharedRegion::CheckRange(int64_t offset, int64_t bytes) const {
  int64_t end = 0;
  const bool fits = offset >= 0 && bytes >= 0 && !__builtin_add_overflow(offset, bytes, &end) &&
                    end <= info_.bytes;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("shared memory region ", QuotedText(info_.name),
                                                 " has ", info_.bytes, " bytes, the request needs ",
                                                 bytes, " from offset ", offset, " on"));
}

absl::Status SharedRegion::Cut(int64_t end, int64_t there) const {
  return absl::FailedPreconditionError(absl::StrCat(Named(info_), " was cut by its client: it has ",
                                                    there, " bytes now, the request needs ", end));
}

absl::Status SharedRegion::Read(int64_t offset, absl::Span<char> bytes) const {
  RETURN_IF_ERROR(CheckRange(offset, static_cast<int64_t>(bytes.size())));
  int64_t position = info_.offset + offset;
  const int64_t end = position + static_cast<int64_t>(bytes.size());
  while (position < end) {
    const ssize_t got = pread(descriptor_, bytes.data() + (bytes.size() - (end - position)),
                              static_cast<size_t>(end - position), position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(info_, "it cannot be read", errno);
    if (got == 0) return Cut(end, position);
    position += got;
  }
  return absl::OkStatus();
}

absl::Status SharedRegion::Write(int64_t offset, absl::string_view bytes) const {
  RETURN_IF_ERROR(CheckRange(offset, static_cast<int64_t>(bytes.size())));
  int64_t position = info_.offset + offset;
  const int64_t end = position + static_cast<int64_t>(bytes.size());
  // A write past the end would make the object grow again. A cut between this and the write does
  // just that, within the region, and is harmless.
  ASSIGN_OR_RETURN(const int64_t there, ObjectBytes());
  if (there < end) return Cut(end, there);
  while (position < end) {
    const ssize_t put = pwrite(descriptor_, bytes.data() + (bytes.size() - (end - position)),
                               static_cast<size_t>(end - position), position);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError(info_, "it cannot be written", errno);
    position += put;
  }
  return absl::OkStatus();
}

}  // namespace reprise
