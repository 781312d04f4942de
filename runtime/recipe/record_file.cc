#include "runtime/recipe/record_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/digest128.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr char kMagic[8] = {'R', 'P', 'S', 'T', 'O', 'R', 'E', '\n'};
constexpr char kMacMagic[8] = {'R', 'P', 'S', 'M', 'A', 'C', '1', '\n'};
constexpr size_t kDigestOffset = 32;
constexpr size_t kDigestBytes = 16;

constexpr char kTemporaryPrefix[] = ".tmp-";
// A file younger than this may be between its creation and its lock.
constexpr time_t kTemporaryGraceS = 60;

template <typename T>
void Put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

template <typename T>
T GetInteger(absl::string_view bytes, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  }
  return value;
}

std::string DigestOf(absl::string_view head, absl::string_view payload) {
  Digest128 digest;
  digest.Add(head);
  digest.Add(payload);
  return digest.Bytes();
}

// Returns whether both are equal, without a branch on their bytes.
bool IsEqualMac(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

// Splits what follows the payload off: the MAC, empty where there is none. `payload_bytes`: as the
// header says. DATA_LOSS where something else follows.
absl::StatusOr<absl::string_view> TakeMac(uint64_t payload_bytes, absl::string_view& bytes) {
  const size_t rest = bytes.size() - kRecordHeaderBytes;
  if (payload_bytes == rest) return absl::string_view();
  constexpr size_t kTrailer = sizeof(kMacMagic) + kMacBytes;
  if (rest < kTrailer || payload_bytes != rest - kTrailer ||
      bytes.substr(bytes.size() - kTrailer, sizeof(kMacMagic)) !=
          absl::string_view(kMacMagic, sizeof(kMacMagic))) {
    return absl::DataLossError(
        absl::StrCat("holds ", rest, " bytes of payload where ", payload_bytes, " were written"));
  }
  const absl::string_view mac = bytes.substr(bytes.size() - kMacBytes);
  bytes.remove_suffix(kTrailer);
  return mac;
}

// Closes the file, and removes it while it has no other name.
class TemporaryFile {
 public:
  TemporaryFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~TemporaryFile() {
    close(fd_);
    if (!renamed_) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  void SetRenamed() { renamed_ = true; }

 private:
  const std::string path_;
  const int fd_;
  bool renamed_ = false;
};

absl::Status SystemError(int error, absl::string_view what, absl::string_view path) {
  const std::string message = absl::StrCat(what, " '", path, "': ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(written < 0 ? errno : ENOSPC, "cannot write", path);
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

struct StoreMissRow {
  absl::string_view name;
  absl::string_view words;
};

// In the order of StoreMiss.
constexpr StoreMissRow kStoreMisses[kNumStoreMisses] = {
    {"absent", "it is not in the store"},
    {"corrupt", "the stored file is damaged"},
    {"other_format", "the stored file has another format version"},
    {"foreign", "the stored file belongs to another key"},
    {"other_precision", "it was stored for another precision"},
    {"other_graph", "it was stored for another graph of this model"},
    {"other_device", "it was stored for another device"},
    {"other_compiler", "it was stored by another compiler version"},
    {"unreadable", "the store cannot be read"},
    {"unauthentic", "the stored file has no MAC by this store key"},
};

std::string TemporaryName() {
  static std::atomic<uint64_t> counter{0};
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return absl::StrCat(kTemporaryPrefix, getpid(), "-", now.tv_sec, "-", now.tv_nsec, "-",
                      counter++);
}

}  // namespace

absl::string_view RecordKindName(RecordKind kind) {
  constexpr absl::string_view kNames[] = {"recipe", "model", "usage", "bundle", "choices"};
  return kNames[static_cast<size_t>(kind) - static_cast<size_t>(RecordKind::kRecipe)];
}

absl::string_view StoreMissName(StoreMiss miss) {
  return kStoreMisses[static_cast<size_t>(miss)].name;
}

absl::string_view StoreMissWords(StoreMiss miss) {
  return kStoreMisses[static_cast<size_t>(miss)].words;
}

std::string EncodeRecord(const Record& record, const RecordMac& mac) {
  std::string bytes(kMagic, sizeof(kMagic));
  Put<uint32_t>(bytes, kRecordFormat);
  Put<uint32_t>(bytes, static_cast<uint32_t>(record.kind));
  Put<uint64_t>(bytes, record.payload.size());
  Put<uint64_t>(bytes, record.rebuild_ns);
  bytes += DigestOf(bytes, record.payload);
  bytes += record.payload;
  if (mac != nullptr) {
    const std::string code = mac(bytes);
    bytes.append(kMacMagic, sizeof(kMacMagic));
    bytes += code;
  }
  return bytes;
}

absl::StatusOr<Record> DecodeRecord(absl::string_view bytes, const RecordMac& mac) {
  if (bytes.size() < kRecordHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("ends after ", bytes.size(), " bytes, before its header does"));
  }
  if (bytes.substr(0, sizeof(kMagic)) != absl::string_view(kMagic, sizeof(kMagic))) {
    return absl::DataLossError("does not begin as a record does");
  }
  // Checked first, because all else may have another layout in another format.
  const uint32_t format = GetInteger<uint32_t>(bytes, 8);
  if (format != kRecordFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("has format version ", format, "; this program has ", kRecordFormat));
  }
  const uint64_t payload_bytes = GetInteger<uint64_t>(bytes, 16);
  ASSIGN_OR_RETURN(const absl::string_view stored_mac, TakeMac(payload_bytes, bytes));
  const absl::string_view payload = bytes.substr(kRecordHeaderBytes);
  if (bytes.substr(kDigestOffset, kDigestBytes) !=
      DigestOf(bytes.substr(0, kDigestOffset), payload)) {
    return absl::DataLossError("its checksum does not match");
  }
  const uint32_t kind = GetInteger<uint32_t>(bytes, 12);
  const uint64_t rebuild_ns = GetInteger<uint64_t>(bytes, 24);
  if (kind < static_cast<uint32_t>(RecordKind::kRecipe) ||
      kind > static_cast<uint32_t>(RecordKind::kChoices) || rebuild_ns > INT64_MAX) {
    return absl::DataLossError(absl::StrCat("has kind ", kind, ", which does not exist"));
  }
  if (mac != nullptr && !IsEqualMac(stored_mac, mac(bytes))) {
    return absl::UnauthenticatedError(stored_mac.empty()
                                          ? "has no MAC, and a store key is given"
                                          : "its MAC is not by the store key that is given");
  }
  return Record{static_cast<RecordKind>(kind), static_cast<int64_t>(rebuild_ns),
                std::string(payload)};
}

StoreMiss RecordMissOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return StoreMiss::kAbsent;
    case absl::StatusCode::kFailedPrecondition:
      return StoreMiss::kOtherFormat;
    case absl::StatusCode::kDataLoss:
      return StoreMiss::kCorrupt;
    case absl::StatusCode::kUnauthenticated:
      return StoreMiss::kUnauthentic;
    default:
      return StoreMiss::kUnreadable;
  }
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t max_bytes) {
  // Non-blocking, so that a pipe under a record's name is refused rather than waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError(errno, "cannot open", path);
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > max_bytes) {
    close(fd);
    return absl::DataLossError(
        absl::StrCat("'", path, "' is not a regular file of at most ", max_bytes, " bytes"));
  }
  std::string bytes(info.st_size, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      close(fd);
      return SystemError(error, "cannot read", path);
    }
    if (got == 0) break;
    filled += got;
  }
  close(fd);
  bytes.resize(filled);
  return bytes;
}

absl::Status WriteFileAtomically(const std::string& folder, const std::string& name,
                                 absl::string_view bytes) {
  const std::string temporary = absl::StrCat(folder, "/", TemporaryName());
  const std::string path = absl::StrCat(folder, "/", name);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError(errno, "cannot create a file in", folder);
  TemporaryFile file(temporary, fd);
  flock(fd, LOCK_EX | LOCK_NB);  // shows that the writer lives; ends with the process
  RETURN_IF_ERROR(WriteAll(fd, bytes, temporary));
  if (fsync(fd) != 0) return SystemError(errno, "cannot sync", temporary);
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return SystemError(errno, "cannot rename to", path);
  }
  file.SetRenamed();
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return SystemError(errno, "cannot open", folder);
  const int synced = fsync(directory);
  const int error = errno;
  close(directory);
  // Some file systems cannot sync a folder; the rename is as safe there as possible.
  if (synced != 0 && error != EINVAL) return SystemError(error, "cannot sync", folder);
  return absl::OkStatus();
}

void SweepTemporaries(const std::string& folder) {
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    if (!absl::StartsWith(entry->d_name, kTemporaryPrefix)) continue;
    const int fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) continue;
    struct stat info = {};
    // A file from the future was written before the clock was set back.
    const bool old =
        fstat(fd, &info) == 0 && std::abs(time(nullptr) - info.st_mtime) > kTemporaryGraceS;
    if (old && flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(directory), entry->d_name, 0);
    close(fd);
  }
  closedir(directory);
}

}  // namespace reprise
