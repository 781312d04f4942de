// WarmupProgress: how far the warm-up of a model version is, readable while the model loads.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "runtime/base/mutex.h"

namespace reprise {

class WarmupProgress {
 public:
  struct State {
    int64_t wanted = 0;
    int64_t done = 0;
    int64_t failed = 0;
    int64_t left_out = 0;  // requested ones that a limit ended
    int64_t elapsed_ns = 0;
    std::string stopped;  // why the rest is left out; empty: it is not

    bool finished() const { return done + failed >= wanted || !stopped.empty(); }
  };

  // `on_change` is called under the lock: be quick.
  explicit WarmupProgress(std::function<void(const State&)> on_change = [](const State&) {})
      : on_change_(std::move(on_change)) {}

  State state() const {
    MutexLock lock(mutex_);
    return state_;
  }
  // Calls `change(state)` under the lock and returns the new state.
  template <typename F>
  State Change(F change) {
    MutexLock lock(mutex_);
    change(state_);
    on_change_(state_);
    return state_;
  }

 private:
  const std::function<void(const State&)> on_change_;
  mutable Mutex mutex_;
  State state_ GUARDED_BY(mutex_);
};

}  // namespace reprise
