// KeyUse: how much of its limits a key has used. It stays when the file is read again.
//
// Ownership: shared by the key ring and by the requests under way.
// Threads:   all methods from any.
#pragma once

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
  explicit KeyUse(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void SetLimits(const KeyLimits& limits) EXCLUDES(mutex_);

  // One request that is under way until the ticket goes.
  using Ticket = std::shared_ptr<const void>;
  // Errors: RESOURCE_EXHAUSTED naming the key and its limit.
  absl::StatusOr<Ticket> Begin(int64_t now_ns) EXCLUDES(mutex_);
  // The same for the key of a request that may have none (null), which has no limits.
  static absl::StatusOr<Ticket> BeginFor(const std::shared_ptr<KeyUse>& key, int64_t now_ns);

 private:
  struct Held;
  void End() EXCLUDES(mutex_);

  const std::string name_;
  // Guarded.
  Mutex mutex_;
  KeyLimits limits_ GUARDED_BY(mutex_);
  int64_t running_ GUARDED_BY(mutex_) = 0;
  double allowed_ GUARDED_BY(mutex_) = 0;  // requests that may come at once, as of `filled_ns_`
  int64_t filled_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
