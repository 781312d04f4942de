// StopFlag: tells running work to end, and tells others since when the work computes.
//
// The work polls it, at the cost of one relaxed load, and ends where it is: its results until then
// are discarded. Setting it twice does nothing.
//
// Threads: all methods from any.
#pragma once

#include <atomic>
#include <cstdint>

namespace reprise {

class StopFlag {
 public:
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Called by the work when it has its resources and begins to compute. `now_ns` is not 0.
  void BeginComputing(int64_t now_ns) { since_ns_.store(now_ns, std::memory_order_relaxed); }
  // Returns 0 until the work has begun.
  int64_t computing_since_ns() const { return since_ns_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> since_ns_{0};
};

}  // namespace reprise
