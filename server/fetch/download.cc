#include "server/fetch/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/digest.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 5;
constexpr std::chrono::milliseconds kFirstPause(500);
constexpr std::chrono::milliseconds kLook(100);
constexpr size_t kBlock = size_t{1} << 20;

std::string NameOf(const RemoteFile& file) {
  if (absl::StartsWith(file.digest, "sha256:") || absl::StartsWith(file.digest, "git:")) {
    return absl::StrReplaceAll(file.digest, {{":", "-"}});
  }
  return file.identity.empty() ? absl::StrCat("unknown-", Sha256Hex(file.get.url))
                               : absl::StrCat("id-", Sha256Hex(file.identity));
}

// The digest that a place told, of bytes as they come.
class Check {
 public:
  explicit Check(const RemoteFile& file) : file_(file) { Reset(); }
  void Reset() {
    digest_.reset();
    const absl::string_view kind = Kind();
    if (kind == "git") {
      digest_.emplace("sha1");
      digest_->Add(absl::StrCat("blob ", file_.bytes, absl::string_view("\0", 1)));
    } else if (!kind.empty()) {
      digest_.emplace(std::string(kind));
    }
  }
  void Add(absl::string_view bytes) {
    if (digest_) digest_->Add(bytes);
  }
  absl::Status Judge(const HttpHead& head) {
    if (!digest_) return absl::OkStatus();
    // An object that is encrypted by a key has a tag that is no digest.
    if (Kind() == "md5" &&
        (absl::StartsWith(head.Header("x-amz-server-side-encryption"), "aws:") ||
         !head.Header("x-amz-server-side-encryption-customer-algorithm").empty())) {
      return absl::OkStatus();
    }
    const std::string hex = digest_->Hex();
    if (absl::EndsWith(file_.digest, absl::StrCat(":", hex))) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(ShownUrl(file_.get.url),
                                            ": the bytes that came have the digest ", Kind(), ":",
                                            hex, ", told was ", file_.digest));
  }

 private:
  absl::string_view Kind() const {
    return absl::string_view(file_.digest).substr(0, file_.digest.find(':'));
  }
  const RemoteFile& file_;
  std::optional<Digest> digest_;
};

absl::Status WriteError(const fs::path& path, int64_t size, int error) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room is left in ", path.parent_path().string(), " (", std::strerror(error), "): ", size,
        " bytes of the file are there, and the next attempt goes on with them"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path.string(), " cannot be written: ", std::strerror(error)));
}

// The file that grows, locked.
class Part {
 public:
  Part(fs::path path, const RemoteFile& file) : path_(std::move(path)), check_(file) {}
  ~Part() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  // Waits until no other process has it. False: another one has finished the file at `whole`.
  absl::StatusOr<bool> Open(const fs::path& whole, const std::function<bool()>& cancelled) {
    while (true) {
      descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (descriptor_ < 0) return WriteError(path_, 0, errno);
      while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        if (cancelled()) return absl::CancelledError("waiting for another download was stopped");
        std::this_thread::sleep_for(kLook);
      }
      struct stat ours = {}, named = {};
      const bool is_named = fstat(descriptor_, &ours) == 0 && stat(path_.c_str(), &named) == 0 &&
                            ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
      std::error_code error;
      if (fs::exists(whole, error)) {
        if (is_named) fs::remove(path_, error);
        return false;
      }
      if (is_named) {
        size_ = ours.st_size;
        return true;
      }
      close(descriptor_);
      descriptor_ = -1;
    }
  }

  int64_t size() const { return size_; }

  absl::Status Clear() {
    check_.Reset();
    size_ = 0;
    if (ftruncate(descriptor_, 0) != 0 || lseek(descriptor_, 0, SEEK_SET) != 0) {
      return WriteError(path_, 0, errno);
    }
    return absl::OkStatus();
  }

  // Reads the part that an earlier process has left.
  absl::Status Resume() {
    check_.Reset();
    std::vector<char> block(kBlock);
    lseek(descriptor_, 0, SEEK_SET);
    int64_t left = size_;
    while (left > 0) {
      const ssize_t got = read(descriptor_, block.data(), std::min<int64_t>(left, kBlock));
      if (got <= 0) return Clear();
      check_.Add({block.data(), static_cast<size_t>(got)});
      left -= got;
    }
    return absl::OkStatus();
  }

  absl::Status Append(absl::string_view bytes) {
    check_.Add(bytes);
    while (!bytes.empty()) {
      const ssize_t wrote = write(descriptor_, bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return WriteError(path_, size_, errno);
      size_ += wrote;
      bytes.remove_prefix(static_cast<size_t>(wrote));
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const HttpHead& head, const fs::path& whole) {
    RETURN_IF_ERROR(check_.Judge(head));
    if (fsync(descriptor_) != 0) return WriteError(path_, size_, errno);
    if (rename(path_.c_str(), whole.c_str()) != 0) return WriteError(whole, size_, errno);
    return absl::OkStatus();
  }

 private:
  const fs::path path_;
  Check check_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// Returns the first byte of an answer with a part of a file; -1 where that is not told.
int64_t BeginOf(const HttpHead& head) {
  const std::vector<std::string> words =
      absl::StrSplit(head.Header("content-range"), absl::ByAnyChar(" -/"));
  int64_t begin = -1;
  return words.size() > 1 && absl::SimpleAtoi(words[1], &begin) ? begin : -1;
}

// Makes one request, from where the part ends.
absl::StatusOr<HttpHead> Attempt(const RemoteFile& file, Part& part, DownloadLimits& limits) {
  HttpGet request = file.get;
  request.offset = part.size();
  if (request.offset > 0 && !file.etag.empty() && !absl::StartsWith(file.etag, "W/")) {
    request.headers.push_back(absl::StrCat("If-Range: ", file.etag));
  }
  bool begun = false;
  const auto sink = [&](const HttpHead& head, absl::string_view bytes) -> absl::Status {
    // One that answers with everything, or with another part, is taken from the start.
    if (!std::exchange(begun, true) && request.offset > 0) {
      if (head.status != 206) RETURN_IF_ERROR(part.Clear());
      if (head.status == 206 && BeginOf(head) != request.offset) {
        return absl::UnavailableError("another part of the file came than was asked for");
      }
    }
    limits.left -= static_cast<int64_t>(bytes.size());
    if (limits.left < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat(ShownUrl(file.get.url), ": the model has more than ",
                       limits.most_bytes >> 20, " MiB (--max-download-mb)"));
    }
    limits.on_bytes(static_cast<int64_t>(bytes.size()));
    return part.Append(bytes);
  };
  ASSIGN_OR_RETURN(HttpHead head, Get(request, sink, limits.cancelled));
  if (file.bytes >= 0 && part.size() < file.bytes) {
    return absl::UnavailableError(absl::StrCat(ShownUrl(file.get.url), " ended after ", part.size(),
                                               " of ", file.bytes, " bytes"));
  }
  if (file.bytes >= 0 && part.size() > file.bytes) {
    return absl::DataLossError(absl::StrCat(ShownUrl(file.get.url), " has ", part.size(),
                                            " bytes, told were ", file.bytes));
  }
  return head;
}

void Pause(int attempt, const std::function<bool()>& cancelled) {
  const auto end = std::chrono::steady_clock::now() + kFirstPause * (1 << attempt);
  while (!cancelled() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kLook);
}

absl::Status TransferFile(const RemoteFile& file, Part& part, const fs::path& whole,
                          DownloadLimits& limits) {
  absl::Status last;
  bool again = part.size() > 0;  // the file may have changed since an earlier process
  if (file.identity.empty() || (file.bytes >= 0 && part.size() > file.bytes)) {
    RETURN_IF_ERROR(part.Clear());
  }
  RETURN_IF_ERROR(part.Resume());
  if (part.size() > 0) limits.on_bytes(part.size());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) Pause(attempt - 1, limits.cancelled);
    absl::StatusOr<HttpHead> head = HttpHead();
    if (file.bytes < 0 || part.size() < file.bytes || file.bytes == 0)
      head = Attempt(file, part, limits);
    last = head.ok() ? part.Finish(*head, whole) : head.status();
    if (last.ok()) return last;
    const bool restart =
        (absl::IsDataLoss(last) || absl::IsFailedPrecondition(last)) && std::exchange(again, false);
    if (absl::IsDataLoss(last)) {
      RETURN_IF_ERROR(part.Clear());
    }
    if (restart) RETURN_IF_ERROR(part.Clear());
    if (!restart && !absl::IsUnavailable(last)) return last;
  }
  return last;
}

}  // namespace

absl::StatusOr<fs::path> Download(const RemoteFile& file, const fs::path& folder,
                                  DownloadLimits& limits) {
  const fs::path whole = folder / NameOf(file);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return WriteError(folder / "file", 0, error.value());
  if (file.identity.empty()) fs::remove(whole, error);
  if (fs::exists(whole, error)) {
    limits.on_bytes(static_cast<int64_t>(fs::file_size(whole, error)));
    return whole;
  }
  Part part(folder / absl::StrCat(NameOf(file), ".part"), file);
  ASSIGN_OR_RETURN(const bool ours, part.Open(whole, limits.cancelled));
  if (!ours) {
    limits.on_bytes(static_cast<int64_t>(fs::file_size(whole, error)));
    return whole;
  }
  RETURN_IF_ERROR(TransferFile(file, part, whole, limits));
  return whole;
}

}  // namespace reprise
