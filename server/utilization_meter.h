// UtilizationMeter: the share of time for which streams were busy, over a window that does not
// depend on how often it is read.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/base/mutex.h"

namespace reprise {

class UtilizationMeter {
 public:
  // `busy_ns`: how long all streams together have been busy since the start. Returns their share of
  // the time since the newest call that is at least 10 s old, or since the first call; 0 at that
  // one.
  double Measure(int64_t now_ns, int64_t busy_ns, int64_t streams) EXCLUDES(mutex_);

 private:
  struct Sample {
    int64_t now_ns, busy_ns;
  };

  Mutex mutex_;
  // Ordered by time; the first one is that which the next call compares with, or older.
  std::deque<Sample> samples_ GUARDED_BY(mutex_);
};

}  // namespace reprise
