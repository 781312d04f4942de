// MissedRecipeCosts: the recipes that requests did without, their cost, and whether a capture pays.
//
// A replay on a larger recipe loses time to padding; a batch that had to be kept small loses the
// sharing. Each loss is added up by the key that would have avoided it. The losses so far are taken
// to happen kExpectedRepeats times again: once that is worth a capture, it is asked for, one time
// until it is granted.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>

#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/recipe/key.h"

namespace reprise {

class MissedRecipeCosts {
 public:
  static constexpr int64_t kExpectedRepeats = 32;

  // Adds `lost_ns` to the cost of lacking `key`, and returns whether a capture that takes
  // `capture_ns` should begin now. `min_times`: how often it must have been missed at least.
  bool Note(const RecipeKey& key, int64_t lost_ns, int64_t capture_ns, int64_t min_times);
  // Notes that the capture has ended, or could not begin: the key may be asked for again.
  void Forget(const RecipeKey& key);

 private:
  struct Cost {
    int64_t times = 0;
    int64_t lost_ns = 0;
    bool asked = false;
  };
  // By the key's hash: two keys that collide share their losses, which only hastens a capture.
  mutable Mutex mutex_;
  HashMap<uint64_t, Cost> costs_ GUARDED_BY(mutex_);
};

}  // namespace reprise
