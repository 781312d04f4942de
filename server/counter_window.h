// CounterWindow: how much counters grew over a window that does not depend on how often it is read.
//
// Threads: all methods from any.
//
//   CounterWindow<2> window({.window_ns = 10 * kSecond});
//   const auto growth = window.Measure(now_ns, {busy_ns, requests});
//   growth.by[0] / growth.ns
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "runtime/base/mutex.h"

namespace reprise {

struct CounterWindowOptions {
  int64_t window_ns = 10'000'000'000;
  // Calls that come more often than this add no sample: their number is bounded.
  int64_t between_samples_ns = 500'000'000;
};

template <size_t kCounters>
class CounterWindow {
 public:
  using Counters = std::array<int64_t, kCounters>;

  struct Growth {
    int64_t ns = 0;  // the time of it; 0 at the first call
    Counters by = {};

    // Returns the growth of a counter per nanosecond; 0 at the first call.
    double Rate(size_t counter) const {
      return ns > 0 ? static_cast<double>(by[counter]) / static_cast<double>(ns) : 0;
    }
  };

  explicit CounterWindow(const CounterWindowOptions& options = {}) : options_(options) {}

  // Returns the growth since the newest call that is at least a window old, or since the first
  // call.
  Growth Measure(int64_t now_ns, const Counters& counters) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (samples_.size() > 1 && now_ns - samples_[1].now_ns >= options_.window_ns) {
      samples_.pop_front();
    }
    Growth growth;
    if (!samples_.empty() && now_ns > samples_.front().now_ns) {
      const Sample& before = samples_.front();
      growth.ns = now_ns - before.now_ns;
      for (size_t i = 0; i < kCounters; ++i) growth.by[i] = counters[i] - before.counters[i];
    }
    if (samples_.empty() || now_ns - samples_.back().now_ns >= options_.between_samples_ns) {
      samples_.push_back({now_ns, counters});
    }
    return growth;
  }

 private:
  struct Sample {
    int64_t now_ns;
    Counters counters;
  };

  const CounterWindowOptions options_;  // constant after construction
  Mutex mutex_;
  // Ordered by time; the first one is what the next call compares with, or older.
  std::deque<Sample> samples_ GUARDED_BY(mutex_);
};

}  // namespace reprise
