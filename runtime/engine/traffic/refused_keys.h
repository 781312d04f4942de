// RefusedKeys: recipes that could not be captured, and are not tried again in the place of smaller
// ones.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>

#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"

namespace reprise {

class RefusedKeys {
 public:
  // Adds a key by its hash. When there are too many, all are forgotten, and then tried once more.
  void Add(uint64_t key_hash) {
    MutexLock lock(mutex_);
    if (keys_.size() >= kMost) keys_.clear();
    keys_.insert(key_hash);
  }
  bool Contains(uint64_t key_hash) const {
    MutexLock lock(mutex_);
    return keys_.contains(key_hash);
  }

 private:
  static constexpr size_t kMost = 4096;

  mutable Mutex mutex_;
  HashSet<uint64_t> keys_ GUARDED_BY(mutex_);
};

}  // namespace reprise
