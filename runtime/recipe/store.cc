#include "runtime/recipe/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr absl::string_view kRecordSuffix = ".rps";
constexpr char kLockName[] = ".lock";
// At most this many records wait to be written; beyond that the oldest is dropped.
constexpr size_t kMaxPending = 4096;

// Held to delete, or to read and then write: by one at a time among all daemons. Ends with the
// process.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) {
    fd_ = open(absl::StrCat(folder, "/", kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    while (fd_ >= 0 && flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

bool MayWrite(const std::string& folder) {
  struct stat info = {};
  // Root may write anywhere; a folder without any write bit is treated as read-only all the same.
  return stat(folder.c_str(), &info) == 0 && (info.st_mode & 0222) != 0 &&
         access(folder.c_str(), W_OK) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecipeStore>> RecipeStore::Open(RecipeStoreOptions options) {
  // Another daemon may be making it at this moment.
  if (!options.read_only) mkdir(options.folder.c_str(), 0755);
  const int error = errno;
  struct stat info = {};
  if (stat(options.folder.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat("recipe store '", options.folder,
                                            "' does not exist and cannot be made: ",
                                            std::strerror(options.read_only ? ENOENT : error)));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::NotFoundError(absl::StrCat("recipe store '", options.folder, "' is not a folder"));
  }
  if (access(options.folder.c_str(), R_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("recipe store '", options.folder, "' cannot be read"));
  }
  std::unique_ptr<RecipeStore> store(new RecipeStore(std::move(options)));
  const bool writable = !store->options_.read_only && MayWrite(store->options_.folder);
  if (writable) SweepTemporaries(store->options_.folder);
  MutexLock lock(store->mutex_);
  store->writable_ = writable;
  return store;
}

RecipeStore::~RecipeStore() { WritePending(); }

bool RecipeStore::writable() const {
  MutexLock lock(mutex_);
  return writable_;
}

std::string RecipeStore::PathOf(const std::string& file) const {
  return absl::StrCat(options_.folder, "/", file);
}

RecipeStore::Found RecipeStore::Read(const RecordName& name) {
  Found found;
  const Lookup lookup = Look(name);
  if (!lookup.file.has_value()) {
    found.miss = lookup.why;
    return found;
  }
  const auto bytes = ReadWholeFile(PathOf(*lookup.file), options_.max_bytes);
  absl::Status status = bytes.status();
  if (bytes.ok()) {
    absl::StatusOr<Record> record = DecodeRecord(*bytes, options_.mac);
    status = record.status();
    if (record.ok() && record->kind == name.kind) {
      found.payload = std::move(record->payload);
      MutexLock lock(mutex_);
      ++stats_.reads;
      return found;
    }
    if (record.ok()) {
      found.miss = StoreMiss::kForeign;
      found.detail = absl::StrCat("it is a ", RecordKindName(record->kind), " record");
      return found;
    }
  }
  found.miss = RecordMissOf(status);
  found.detail = std::string(status.message());
  // It may have been removed in between.
  if (found.miss == StoreMiss::kAbsent) found.detail.clear();
  if (found.miss == StoreMiss::kCorrupt) NoteCorrupt(name, found.detail);
  if (found.miss == StoreMiss::kUnauthentic) {
    {
      MutexLock lock(mutex_);
      ++stats_.unauthentic;
    }
    options_.log(
        absl::StrCat("recipe store: '", PathOf(*lookup.file), "' is not used: ", found.detail));
  }
  return found;
}

absl::StatusOr<Record> RecipeStore::ReadEntry(const Entry& entry) const {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(PathOf(entry.file), options_.max_bytes));
  return DecodeRecord(bytes, options_.mac);
}

bool RecipeStore::Has(const RecordName& name) const { return Look(name).file.has_value(); }

void RecipeStore::NoteCorrupt(const RecordName& name, absl::string_view what) {
  {
    MutexLock lock(mutex_);
    ++stats_.corrupt;
  }
  options_.log(
      absl::StrCat("recipe store: '", PathOf(FileFor(name)), "' is damaged, and not used: ", what));
}

RecipeStore::Lookup RecipeStore::Look(const RecordName& name) const {
  Lookup lookup;
  if (access(PathOf(name.file()).c_str(), F_OK) == 0) {
    lookup.file = name.file();
    return lookup;
  }
  DIR* directory = opendir(options_.folder.c_str());
  if (directory == nullptr) {
    lookup.why = StoreMiss::kUnreadable;
    return lookup;
  }
  const auto close = absl::MakeCleanup([directory] { closedir(directory); });
  while (const dirent* file = readdir(directory)) {
    const std::optional<RecordName> parsed = RecordName::Parse(file->d_name);
    if (!parsed.has_value()) continue;
    const RecordName& other = *parsed;
    if (other.IsSameRecord(name)) {
      lookup.file = other.file();
      return lookup;
    }
    if (other.kind != name.kind || other.subject != name.subject) continue;
    const bool same_graph = other.graph == name.graph;
    const bool same_device = other.device == name.device;
    if (lookup.why == StoreMiss::kOtherCompiler) continue;
    if (same_graph && same_device && other.compiler != name.compiler) {
      lookup.why = StoreMiss::kOtherCompiler;
    } else if (same_graph && !same_device) {
      lookup.why = StoreMiss::kOtherDevice;
    } else if (!same_graph && same_device && other.origin == name.origin &&
               lookup.why == StoreMiss::kAbsent) {
      lookup.why = StoreMiss::kOtherGraph;
    }
  }
  return lookup;
}

std::string RecipeStore::FileFor(const RecordName& name) const {
  return Look(name).file.value_or(name.file());
}

void RecipeStore::WriteLater(const RecordName& name, int64_t rebuild_ns, std::string payload) {
  MutexLock lock(mutex_);
  if (!writable_) return;
  for (Pending& pending : pending_) {
    if (!pending.name.IsSameRecord(name)) continue;
    pending.payload = std::move(payload);
    pending.rebuild_ns = rebuild_ns;
    return;
  }
  if (pending_.size() >= kMaxPending) {
    pending_.pop_front();
    ++stats_.write_failures;
  }
  pending_.push_back({name, rebuild_ns, std::move(payload)});
  changed_.NotifyAll();
}

void RecipeStore::WritePending() {
  while (true) {
    Pending next;
    {
      MutexLock lock(mutex_);
      if (pending_.empty()) return;
      next = std::move(pending_.front());
      pending_.pop_front();
    }
    // A record for whose write memory runs out is captured again after a restart.
    WhereMemoryAllows([&] { NoteWrite(Write(next.name, next.rebuild_ns, next.payload)); });
  }
}

void RecipeStore::NoteWrite(const absl::Status& status) {
  std::string text;
  {
    MutexLock lock(mutex_);
    if (status.ok()) {
      last_failure_.clear();
      return;
    }
    ++stats_.write_failures;
    if (absl::IsPermissionDenied(status)) writable_ = false;
    if (last_failure_ == status.message()) return;
    last_failure_ = std::string(status.message());
    text = last_failure_;
  }
  options_.log(absl::StrCat("recipe store: ", text,
                            absl::IsPermissionDenied(status)
                                ? "; it is read from now on, not written"
                                : "; serving goes on without it"));
}

void RecipeStore::RunWriter(std::chrono::nanoseconds every, const std::function<void()>& tick) {
  auto last = std::chrono::steady_clock::now();
  while (true) {
    bool stopping;
    {
      MutexLock lock(mutex_);
      while (pending_.empty() && !stopping_) {
        const auto left = last + every - std::chrono::steady_clock::now();
        if (left <= left.zero() || !changed_.WaitFor(mutex_, left)) break;
      }
      stopping = stopping_;
    }
    WritePending();
    if (stopping) return;
    if (std::chrono::steady_clock::now() < last + every) continue;
    WhereMemoryAllows(tick);
    last = std::chrono::steady_clock::now();
  }
}

void RecipeStore::StopWriter() {
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.NotifyAll();
}

absl::Status RecipeStore::Write(const RecordName& name, int64_t rebuild_ns,
                                const std::string& payload) {
  const Phase phase(options_.debug, LogModule::kStore,
                    [&] { return absl::StrCat("writing ", name.file()); });
  if (!writable()) {
    return absl::PermissionDeniedError(absl::StrCat("'", options_.folder, "' is read-only"));
  }
  const std::string bytes = EncodeRecord(
      {.kind = name.kind, .rebuild_ns = std::max<int64_t>(rebuild_ns, 0), .payload = payload},
      options_.mac);
  if (static_cast<int64_t>(bytes.size()) > options_.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a ", RecordKindName(name.kind), " takes ",
                                                     bytes.size(), " bytes; the store holds ",
                                                     options_.max_bytes));
  }
  RETURN_IF_ERROR(WriteFileAtomically(options_.folder, FileFor(name), bytes));
  int64_t total = 0;
  for (const Entry& entry : List()) total += entry.bytes;
  {
    MutexLock lock(mutex_);
    ++stats_.writes;
  }
  if (total <= options_.max_bytes) return absl::OkStatus();
  const FolderLock lock(options_.folder);
  return EvictLocked(options_.max_bytes, /*damaged_too=*/false).status();
}

absl::Status RecipeStore::Update(const RecordName& name, int64_t rebuild_ns,
                                 const std::function<std::string(const std::string&)>& change) {
  if (!writable()) return absl::OkStatus();
  absl::Status status;
  {
    const FolderLock lock(options_.folder);
    const std::string file = FileFor(name);
    const auto bytes = ReadWholeFile(PathOf(file), options_.max_bytes);
    const auto record = bytes.ok() ? DecodeRecord(*bytes, options_.mac) : bytes.status();
    const bool known = record.ok() && record->kind == name.kind;
    const std::string payload = change(known ? record->payload : "");
    status = WriteFileAtomically(
        options_.folder, file,
        EncodeRecord({.kind = name.kind, .rebuild_ns = rebuild_ns, .payload = payload},
                     options_.mac));
  }
  NoteWrite(status);
  return status;
}

std::vector<RecipeStore::Entry> RecipeStore::List() const {
  std::vector<Entry> entries;
  DIR* directory = opendir(options_.folder.c_str());
  if (directory == nullptr) return entries;
  while (const dirent* file = readdir(directory)) {
    if (!absl::EndsWith(file->d_name, kRecordSuffix)) continue;
    struct stat info = {};
    if (fstatat(dirfd(directory), file->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    entries.push_back({.file = file->d_name,
                       .name = RecordName::Parse(file->d_name),
                       .bytes = info.st_size,
                       .modified_unix_s = info.st_mtime});
  }
  closedir(directory);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.file < b.file; });
  return entries;
}

std::map<uint64_t, uint64_t> RecipeStore::UsesByKey(const std::vector<Entry>& entries) const {
  std::map<uint64_t, uint64_t> uses;
  for (const Entry& entry : entries) {
    if (!entry.name.has_value() || entry.name->kind != RecordKind::kUsage) continue;
    const auto bytes = ReadWholeFile(PathOf(entry.file), options_.max_bytes);
    const auto record = bytes.ok() ? DecodeRecord(*bytes, options_.mac) : bytes.status();
    recipe::v1::StoredUsage usage;
    if (!record.ok() || !usage.ParseFromString(record->payload)) continue;
    for (const auto& use : usage.recipes()) uses[use.key()] += use.uses();
  }
  return uses;
}

absl::StatusOr<RecipeStore::Pruned> RecipeStore::Prune(int64_t max_bytes, bool damaged_too) {
  if (!writable()) {
    return absl::PermissionDeniedError(absl::StrCat("'", options_.folder, "' is read-only"));
  }
  const FolderLock lock(options_.folder);
  return EvictLocked(max_bytes, damaged_too);
}

absl::StatusOr<RecipeStore::Pruned> RecipeStore::EvictLocked(int64_t max_bytes, bool damaged_too) {
  const std::vector<Entry> entries = List();
  const std::map<uint64_t, uint64_t> uses = UsesByKey(entries);
  struct Valued {
    const Entry* entry;
    double value;
  };
  std::vector<Valued> valued;
  int64_t total = 0;
  for (const Entry& entry : entries) {
    total += entry.bytes;
    const std::string path = absl::StrCat(options_.folder, "/", entry.file);
    const auto bytes = ReadWholeFile(path, entry.bytes);
    const auto record = bytes.ok() ? DecodeRecord(*bytes, options_.mac) : bytes.status();
    // Damaged and foreign files have no value.
    double value = -1;
    if (record.ok() && entry.name.has_value() && record->kind == entry.name->kind) {
      const auto use = uses.find(entry.name->key);
      const double count = 1 + (use == uses.end() ? 0.0 : static_cast<double>(use->second));
      value = static_cast<double>(record->rebuild_ns) * count /
              static_cast<double>(std::max<int64_t>(entry.bytes, 1));
    }
    valued.push_back({&entry, value});
  }
  std::stable_sort(valued.begin(), valued.end(), [](const Valued& a, const Valued& b) {
    if (a.value != b.value) return a.value < b.value;
    return a.entry->modified_unix_s < b.entry->modified_unix_s;
  });
  Pruned pruned;
  for (const Valued& one : valued) {
    const bool damaged = one.value < 0;
    if (total <= max_bytes && !(damaged && damaged_too)) {
      if (!damaged_too) break;
      continue;
    }
    const std::string path = absl::StrCat(options_.folder, "/", one.entry->file);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return absl::UnavailableError(
          absl::StrCat("cannot remove '", path, "': ", std::strerror(errno)));
    }
    total -= one.entry->bytes;
    ++pruned.files;
    pruned.bytes += one.entry->bytes;
  }
  MutexLock lock(mutex_);
  stats_.evictions += pruned.files;
  return pruned;
}

RecipeStore::Stats RecipeStore::GetStats() const {
  const bool readable = access(options_.folder.c_str(), R_OK | X_OK) == 0;
  int64_t files = 0, bytes = 0;
  for (const Entry& entry : List()) {
    ++files;
    bytes += entry.bytes;
  }
  MutexLock lock(mutex_);
  Stats stats = stats_;
  stats.entries = files;
  stats.bytes = bytes;
  stats.max_bytes = options_.max_bytes;
  stats.writable = writable_;
  stats.usable = readable && last_failure_.empty();
  stats.pending = static_cast<int64_t>(pending_.size());
  return stats;
}

}  // namespace reprise
