// KeyUse: how much of its limits a key has used. It stays when the file is read again.
//
// Ownership: shared by the key ring and by the requests under way.
// Threads:   all methods from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "server/access/key_file.h"

namespace reprise {

class KeyUse : public std::enable_shared_from_this<KeyUse> {
 public:
  explicit KeyUse(std::string name);

  const std::string& name() const { return name_; }
  void SetLimits(const KeyLimits& limits) EXCLUDES(mutex_);
  // Stands for the name; not 0, which stands for none.
  uint64_t id() const { return id_; }
  // Returns its share of the server relative to other keys.
  double weight() const { return weight_; }
  // Returns a number that is equal for keys that share pages; not 0.
  uint64_t page_owner() const { return page_owner_; }

  // One request that is under way until the ticket goes.
  using Ticket = std::shared_ptr<const void>;
  // Errors: RESOURCE_EXHAUSTED naming the key and its limit.
  absl::StatusOr<Ticket> Begin(int64_t now_ns) EXCLUDES(mutex_);
  // Returns the same for the key of a request that may have none (null), which has no limits.
  static absl::StatusOr<Ticket> BeginFor(const std::shared_ptr<KeyUse>& key, int64_t now_ns);

 private:
  struct Held;
  void End() EXCLUDES(mutex_);

  const std::string name_;
  const uint64_t id_;
  // Self-synchronised.
  std::atomic<double> weight_{1};
  std::atomic<uint64_t> page_owner_;
  // Guarded.
  Mutex mutex_;
  KeyLimits limits_ GUARDED_BY(mutex_);
  int64_t running_ GUARDED_BY(mutex_) = 0;
  double allowed_ GUARDED_BY(mutex_) = 0;  // requests that may come at once, as of `filled_ns_`
  int64_t filled_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
