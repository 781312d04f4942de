// KeyRing: the keys of a file, as they are now.
//
// The file is looked at at most once a second, and read again where its time, size or inode has
// changed. A file that cannot be read, or has a mistake, leaves the keys as they were, and is
// reported once.
//
// Threads: all methods from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/access/key_file.h"
#include "server/access/key_use.h"

namespace reprise {

class KeyRing {
 public:
  struct Entry {
    Key key;
    std::shared_ptr<KeyUse> use;
  };
  using OnTrouble = std::function<void(const absl::Status& why)>;

  // Reads the file. `clock` outlives the ring. Errors: failures to read or parse it, with its
  // name.
  static absl::StatusOr<std::unique_ptr<KeyRing>> Open(std::string path, const Clock& clock,
                                                       OnTrouble on_trouble);

  // Returns the key that `presented` is; null where none is. Takes the same time whichever it
  // is, and however many of its bytes are right.
  std::shared_ptr<const Entry> Find(absl::string_view presented) EXCLUDES(mutex_);

 private:
  using Entries = std::vector<std::shared_ptr<const Entry>>;

  KeyRing(std::string path, const Clock& clock, OnTrouble on_trouble)
      : path_(std::move(path)), clock_(clock), on_trouble_(std::move(on_trouble)) {}
  absl::Status Read(const std::string& stamp) REQUIRES(mutex_);
  // Looks at the file where that is due. Returns the trouble to report.
  absl::Status LookAtFile() REQUIRES(mutex_);
  std::string Stamp() const;

  // Constant after construction.
  const std::string path_;
  const Clock& clock_;
  const OnTrouble on_trouble_;
  // Guarded.
  Mutex mutex_;
  std::shared_ptr<const Entries> entries_ GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<KeyUse>> uses_ GUARDED_BY(mutex_);
  std::string stamp_ GUARDED_BY(mutex_);
  int64_t looked_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
