// Event: a place in the order of one stream, which others wait for.
//
//   Event packed;
//   first.Replay(*encoder);
//   first.Record(packed);     // reached when the replay before it has ended
//   second.Wait(packed);      // later work on `second` begins after that
//   second.Replay(*decoder);
//
// An event that is recorded again stands for the later place; a Wait waits for the record that was
// there when it was called, and for none where there was none.
//
// Threads: all methods from any. An event outlives the streams that it was given to, or their
// Synchronize().
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/base/mutex.h"

namespace reprise {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Returns whether all records so far were reached; true where there were none.
  bool reached() const {
    MutexLock lock(mutex_);
    return reached_ >= recorded_;
  }
  // Waits for that.
  void Synchronize() const {
    MutexLock lock(mutex_);
    const int64_t number = recorded_;
    while (reached_ < number) changed_.Wait(mutex_);
  }
  // Returns the time at which the last record was reached, on the steady clock; 0: none was.
  int64_t reached_at_ns() const {
    MutexLock lock(mutex_);
    return reached_at_ns_;
  }

 private:
  friend class WorkStream;
  int64_t Record() {
    MutexLock lock(mutex_);
    return ++recorded_;
  }
  int64_t recorded() const {
    MutexLock lock(mutex_);
    return recorded_;
  }
  void Reach(int64_t number) {
    const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::steady_clock::now().time_since_epoch())
                            .count();
    MutexLock lock(mutex_);
    if (number <= reached_) return;
    reached_ = number;
    reached_at_ns_ = now;
    changed_.NotifyAll();
  }
  void WaitFor(int64_t number) const {
    MutexLock lock(mutex_);
    while (reached_ < number) changed_.Wait(mutex_);
  }

  mutable Mutex mutex_;
  mutable CondVar changed_;
  int64_t recorded_ GUARDED_BY(mutex_) = 0;
  int64_t reached_ GUARDED_BY(mutex_) = 0;
  int64_t reached_at_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
