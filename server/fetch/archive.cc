#include "server/fetch/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/inner_path.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostEntries = 100'000;
constexpr size_t kBlockBytes = size_t{256} << 10;

using Reader = std::unique_ptr<archive, int (*)(archive*)>;

absl::Status Refused(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the archive's entry ", QuotedText(path, 200), " ", why));
}

absl::Status Unreadable(archive* reader) {
  const char* why = archive_error_string(reader);
  return absl::InvalidArgumentError(
      absl::StrCat("the archive cannot be read: ", why == nullptr ? "it is damaged" : why));
}

// Checks the path of an entry; "./" in front of it is no part of it.
absl::StatusOr<std::string> InnerPath(const std::string& path) {
  absl::string_view inner = absl::StripSuffix(path, "/");
  while (absl::ConsumePrefix(&inner, "./")) {
  }
  if (inner == ".") return "";
  if (inner.empty()) return Refused(path, "has no name");
  if (inner[0] == '/') return Refused(path, "has an absolute path");
  if (!IsInnerPath(inner))
    return Refused(path, "leaves its folder, or has a name that no file has");
  return std::string(inner);
}

absl::Status CannotWrite(const fs::path& path, int error) {
  const std::string words =
      absl::StrCat(path.string(), " cannot be written: ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(words);
  return absl::FailedPreconditionError(words);
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

// Writes the bytes of the entry that was read last. `left`: the bytes that may still be written.
absl::Status WriteEntry(archive* reader, const std::string& name, const fs::path& path,
                        int64_t most_bytes, int64_t& left, const std::function<bool()>& cancelled) {
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (file.descriptor() < 0 && errno == EEXIST) return Refused(name, "is there twice");
  if (file.descriptor() < 0) return CannotWrite(path, errno);
  std::vector<char> block(kBlockBytes);
  while (true) {
    const la_ssize_t read = archive_read_data(reader, block.data(), block.size());
    if (read < 0) return Unreadable(reader);
    if (read == 0) return absl::OkStatus();
    if (cancelled()) return absl::CancelledError("unpacking was stopped");
    left -= read;
    if (left < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the archive unpacks to more than ", most_bytes >> 20,
                       " MiB (--max-download-mb), at ", QuotedText(name, 200)));
    }
    for (la_ssize_t done = 0; done < read;) {
      const ssize_t wrote = write(file.descriptor(), block.data() + done, read - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return CannotWrite(path, errno);
      done += wrote;
    }
  }
}

}  // namespace

bool IsArchiveName(const std::string& name) {
  for (const char* end : {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".zip"}) {
    if (absl::EndsWithIgnoreCase(name, end)) return true;
  }
  return false;
}

absl::Status Unpack(const fs::path& archive_file, const fs::path& folder, int64_t most_bytes,
                    const std::function<bool()>& cancelled) {
  const Reader reader(archive_read_new(), archive_read_free);
  archive* const from = reader.get();
  // Each by its name: for others libarchive would start programs.
  archive_read_support_filter_gzip(from);
  archive_read_support_filter_bzip2(from);
  archive_read_support_filter_xz(from);
  archive_read_support_filter_zstd(from);
  archive_read_support_format_tar(from);
  archive_read_support_format_zip(from);
  if (archive_read_open_filename(from, archive_file.c_str(), kBlockBytes) != ARCHIVE_OK) {
    return Unreadable(from);
  }
  int64_t left = most_bytes, entries = 0;
  archive_entry* entry = nullptr;
  while (true) {
    const int code = archive_read_next_header(from, &entry);
    if (code == ARCHIVE_EOF) return absl::OkStatus();
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Unreadable(from);
    const char* raw = archive_entry_pathname(entry);
    const std::string name = raw == nullptr ? "" : raw;
    if (++entries > kMostEntries) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the archive has more than ", kMostEntries, " entries"));
    }
    ASSIGN_OR_RETURN(const std::string inner, InnerPath(name));
    const auto type = archive_entry_filetype(entry);
    if (archive_entry_symlink(entry) != nullptr || archive_entry_hardlink(entry) != nullptr) {
      return Refused(name, "is a link; files and folders are unpacked");
    }
    if (inner.empty() && type == AE_IFDIR) continue;
    const fs::path path = folder / inner;
    std::error_code error;
    if (type == AE_IFDIR) {
      fs::create_directories(path, error);
      if (error) return CannotWrite(path, error.value());
      continue;
    }
    if (type != AE_IFREG) return Refused(name, "is neither a file nor a folder");
    fs::create_directories(path.parent_path(), error);
    if (error) return CannotWrite(path.parent_path(), error.value());
    RETURN_IF_ERROR(WriteEntry(from, name, path, most_bytes, left, cancelled));
  }
}

}  // namespace reprise
