// ExactCacheAdmission: how often exact recipes of a model may replace each other.
//
// A model whose shapes are more than reprise.max_exact, all of which come again, would capture one
// for almost every request. The gain of a capture over an eager run, which has the same kernels and
// keeps its preparations, is little and takes many replays to come back: captures that drive out
// others may take a small share of the time of replays, after some that are free.
//
// Threads: all methods from any.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/mutex.h"

namespace reprise {

class ExactCacheAdmission {
 public:
  static constexpr int64_t kFree = 16;             // captures
  static constexpr int64_t kReplayNsForNs = 1000;  // time of replays for each ns of captures

  // Notes that a replay took `replay_ns`.
  void Earn(int64_t replay_ns, int64_t capture_ns) {
    MutexLock lock(mutex_);
    earned_ns_ = std::min(earned_ns_ + replay_ns, kFree * capture_ns * kReplayNsForNs);
  }

  // Returns whether one more may drive out another, which is then counted.
  bool Spend(int64_t capture_ns) {
    MutexLock lock(mutex_);
    if (free_ > 0) {
      --free_;
      return true;
    }
    if (earned_ns_ < capture_ns * kReplayNsForNs) return false;
    earned_ns_ -= capture_ns * kReplayNsForNs;
    return true;
  }

 private:
  Mutex mutex_;
  int64_t free_ GUARDED_BY(mutex_) = kFree;
  int64_t earned_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
