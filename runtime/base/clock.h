// Time as a dependency that can be injected: tests pass a clock that stands still.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace reprise {

// Nanoseconds since an arbitrary start, never going back. Threads: safe from any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowNs() const = 0;
};

class SteadyClock final : public Clock {
 public:
  int64_t NowNs() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

// Moves only when told to.
class FakeClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_.load(); }
  void AdvanceNs(int64_t ns) { now_ns_ += ns; }

 private:
  std::atomic<int64_t> now_ns_{0};
};

}  // namespace reprise
