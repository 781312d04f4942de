// RecipeStore: a folder of results that are expensive to compute, shared by any number of daemons.
//
// One file a record (record_file.h), named after its key (record_name.h), and found whichever model
// had it stored. Any fault of a file is a miss with a reason, never an error: the caller then
// computes the result again, and the file is replaced. Files appear and vanish whole, so that
// daemons need no agreement to read; writers that delete hold a lock in the folder.
//
// A folder that cannot be written still serves. When the files take more than `max_bytes`, the
// files of the least value (cost of making it again x uses / bytes) go.
//
// Writes wait in a queue, off the path of requests: the owner runs RunWriter() on a thread of its
// own, or calls WritePending(). Pending writes are finished before the object is gone.
//
//   ASSIGN_OR_RETURN(auto store, RecipeStore::Open({.folder = folder}));
//   const RecipeStore::Found found = store->Read(name);
//   if (!found.payload.has_value()) log(StoreMissWords(found.miss));
//   store->WriteLater(name, rebuild_ns, message.SerializeAsString());
//
// Threads: all methods are safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/debug_log.h"
#include "runtime/base/mutex.h"
#include "runtime/recipe/record_name.h"

namespace reprise {

struct RecipeStoreOptions {
  std::string folder;  // made when it is absent
  int64_t max_bytes = int64_t{1} << 30;
  bool read_only = false;  // as if the folder could not be written
  // Signs the records that are written; others are not used. Null: records have no MAC, and none is
  // looked at.
  RecordMac mac;
  DebugLog* debug = nullptr;  // logs writes; null: no log
  // Notes and warnings for the operator.
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

class RecipeStore {
 public:
  // Errors: NOT_FOUND or PERMISSION_DENIED where the folder is absent and cannot be made or read.
  static absl::StatusOr<std::unique_ptr<RecipeStore>> Open(RecipeStoreOptions options);
  ~RecipeStore();
  RecipeStore(const RecipeStore&) = delete;
  RecipeStore& operator=(const RecipeStore&) = delete;

  const std::string& folder() const { return options_.folder; }
  bool writable() const;

  struct Found {
    std::optional<std::string> payload;
    StoreMiss miss = StoreMiss::kAbsent;  // where there is no payload
    std::string detail;                   // describes the fault of the file for people
  };
  // Reads the payload of the record. The caller compares the full fields of its key.
  Found Read(const RecordName& name);
  // Returns whether there is a file of this record.
  bool Has(const RecordName& name) const;
  // Reports damage that a caller found in a payload: it is counted and logged as a warning.
  void NoteCorrupt(const RecordName& name, absl::string_view what);

  // Queues a record; nothing where the folder is read-only. A record of the same name that still
  // waits is replaced.
  void WriteLater(const RecordName& name, int64_t rebuild_ns, std::string payload);
  // Writes the queued records, on this thread.
  void WritePending();
  // Writes queued records, as they come, until StopWriter(); calls `tick` about every `every`.
  void RunWriter(
      std::chrono::nanoseconds every = std::chrono::hours(1),
      const std::function<void()>& tick = [] {});
  void StopWriter();

  // Writes a record now. Errors: as WriteFileAtomically; RESOURCE_EXHAUSTED for one that is larger
  // than the store may be. Evicts as needed.
  absl::Status Write(const RecordName& name, int64_t rebuild_ns, const std::string& payload);

  // Reads a record, lets `change` make the next one, and writes it, with no other daemon in
  // between. `change` gets an empty string where there is none.
  absl::Status Update(const RecordName& name, int64_t rebuild_ns,
                      const std::function<std::string(const std::string& payload)>& change);

  struct Entry {
    std::string file;
    std::optional<RecordName> name;  // absent: the name is not one of ours
    int64_t bytes = 0;
    int64_t modified_unix_s = 0;
  };
  // Returns the files of the folder that are, or claim to be, records; by name.
  std::vector<Entry> List() const;
  // Returns the record in one of them. Errors: as ReadWholeFile and DecodeRecord.
  absl::StatusOr<Record> ReadEntry(const Entry& entry) const;
  // Returns how often each recipe was used, by key of its record.
  std::map<uint64_t, uint64_t> Uses() const { return UsesByKey(List()); }

  // Removes records of the least value until at most `max_bytes` are left, and the damaged ones.
  struct Pruned {
    int64_t files = 0;
    int64_t bytes = 0;
  };
  absl::StatusOr<Pruned> Prune(int64_t max_bytes, bool damaged_too);

  struct Stats {
    bool usable = true;  // the folder can be read, and written unless it is read-only
    bool writable = true;
    int64_t entries = 0;
    int64_t bytes = 0;
    int64_t max_bytes = 0;
    int64_t reads = 0;
    int64_t corrupt = 0;
    int64_t unauthentic = 0;
    int64_t writes = 0;
    int64_t write_failures = 0;
    int64_t evictions = 0;
    int64_t pending = 0;
  };
  Stats GetStats() const;

 private:
  struct Pending {
    RecordName name;
    int64_t rebuild_ns = 0;
    std::string payload;
  };
  explicit RecipeStore(RecipeStoreOptions options) : options_(std::move(options)) {}

  std::string PathOf(const std::string& file) const;
  struct Lookup {
    std::optional<std::string> file;     // its name in the folder
    StoreMiss why = StoreMiss::kAbsent;  // where there is none, from the names of the present files
  };
  Lookup Look(const RecordName& name) const;
  // Returns the file that a record is written to: the one that it has, else the one of this name.
  std::string FileFor(const RecordName& name) const;
  // Notes how a write ended; warns once for each new failure.
  void NoteWrite(const absl::Status& status);
  // Deletes by value. The folder's lock is held.
  absl::StatusOr<Pruned> EvictLocked(int64_t max_bytes, bool damaged_too);
  std::map<uint64_t, uint64_t> UsesByKey(const std::vector<Entry>& entries) const;

  // Constant after construction.
  RecipeStoreOptions options_;
  // Guarded.
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Pending> pending_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool writable_ GUARDED_BY(mutex_) = true;
  std::string last_failure_ GUARDED_BY(mutex_);
  Stats stats_ GUARDED_BY(mutex_);
};

}  // namespace reprise
