// TuningQueue: which recipes are to be tuned, and when: numbers only.
//
// An exact shape is worth it from its second replay on. A recipe that could not be tuned for want
// of memory is tried again later; one that failed otherwise is not, as long as that is remembered.
//
// Threads: all methods from any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"

namespace reprise {

class TuningQueue {
 public:
  // A recipe that lacked memory is not tried again before this time is over.
  static constexpr int64_t kRetryNs = int64_t{60} * 1'000'000'000;
  static constexpr int64_t kMostRetryNs = 60 * kRetryNs;  // doubled until here
  // Recipes beyond these that do not wait for their tuning are not remembered.
  static constexpr size_t kMost = 4096;

  // Notes that a recipe that could be better was captured or replayed. Returns true where it is to
  // be queued now; End must follow.
  bool Begin(uint64_t key_hash, bool exact, int64_t now_ns);
  // Notes that its turn has ended. OK: it was tuned, or there is nothing left to tune.
  void End(uint64_t key_hash, const absl::Status& status, int64_t now_ns);

  size_t size() const;

 private:
  struct Entry {
    int64_t times = 0;
    bool queued = false;
    int64_t not_before_ns = INT64_MIN;
    int64_t wait_ns = kRetryNs;  // used after the next failure
  };
  mutable Mutex mutex_;
  HashMap<uint64_t, Entry> entries_ GUARDED_BY(mutex_);  // keyed by the key's hash
};

}  // namespace reprise
