// HelperPool: the cores that replays run on.
//
// A lone replay borrows every idle core; under load each core runs a replay of its own. Each call
// of Run() takes one core for the caller's thread and, as far as there are idle ones, more for
// helper threads of the pool; never are more threads running than the pool has cores. Its share is
// decided when it begins: the pool's cores divided by the replays under way, and no more than are
// free. A call that finds no core free waits for one. But a replay may take seconds and keeps its
// cores to its end: where no core at all becomes free for a moment, a waiting call runs its thread
// all the same, as one too many, and the system shares out the CPUs.
//
// A core that the system gives to another process is not waited for: see LaunchWorkers. A helper
// that has not come when the call ends is not needed any more. One that is there may still be
// parked or on its way out: nothing is left for it to do, so the next call can have its core, and
// offer it its parts, at once.
//
// Helpers keep off the CPU that the caller runs on. The system may queue a woken thread on its
// waker's CPU, where the other CPUs are busy for just that moment, and leave it there for
// milliseconds: the replay could have ended in that time.
//
// A helper stays awake for a moment after a call (IdlePolicy), then it parks. Where calls take the
// cores that it and others spin on, it sees that and parks within some 5 us, in which a thread too
// many runs.
//
// Threads: Run from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/allowed_cpus.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/replay/launch_workers.h"

namespace reprise {

class HelperPool {
 public:
  // Starts `cores` - 1 helper threads, or fewer where the system allows no more; cores() counts
  // those that were started and the caller, and is at least one. `clock`, borrowed, tells how long
  // a helper has been idle; null: the steady clock.
  // `patience`: how long a helper stays awake.
  explicit HelperPool(int cores, const Clock* clock = nullptr,
                      std::chrono::nanoseconds patience = std::chrono::milliseconds(5))
      : HelperPool(cores, {}, clock, patience) {}
  // The cores are these CPUs: calls and helpers run on them and on no others.
  explicit HelperPool(const std::vector<int>& cpus)
      : HelperPool(static_cast<int>(cpus.size()), cpus, nullptr, std::chrono::milliseconds(5)) {}
  // No call may be under way.
  ~HelperPool();
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;

  int cores() const { return cores_; }
  // Returns another pool with the same CPUs, for calls that spend most of their time waiting.
  std::unique_ptr<HelperPool> Another() const;

  // Runs `steps` steps one after another, each cut into as many parts as the call got cores, at
  // most `max_threads`; returns that number, which is for tests to see. `function(context, step,
  // part, parts)` is called on the caller's thread and on helpers' threads: for every part, or for
  // part 0 of 1 where no helper comes.
  int Run(int max_threads, int steps, LaunchWorkers::Function function, void* context);

  struct Activity {
    int running = 0;     // calls of Run in progress, or waiting for a core
    uint64_t begun = 0;  // calls of Run so far
    int lingering = 0;   // helpers that are awake and have nothing to do
  };
  Activity activity() const;

 private:
  HelperPool(int cores, std::vector<int> cpus, const Clock* clock,
             std::chrono::nanoseconds patience);

  // The state of a helper's offer. kIdle: none, though the helper may be busy with an earlier one;
  // kOffered: a call; kReading: a call that the helper works on; kCallOver: the same for a call
  // that is over.
  enum State : uint32_t { kIdle, kOffered, kReading, kCallOver, kStop };

  struct Offer {
    LaunchWorkers* workers = nullptr;
    LaunchWorkers::Sequence sequence;
    int part = 0;
  };
  struct Helper {
    std::atomic<uint32_t> state{kIdle};
    Offer offer;             // written by a call while kIdle, read by the helper while kReading
    Helper* next = nullptr;  // the next in the free list, or in the list of a call
    int kept_off = -1;       // the CPU; owned by the holder of the helper
    std::atomic<bool> parked{false};  // or about to park; it may have got an offer already
    std::thread thread;
  };
  // Returns when a core is free, or without one where none has become free for a long time.
  void AwaitCore() REQUIRES(mutex_);
  void FreeCores(int count) REQUIRES(mutex_);
  void Work(Helper& helper);
  // Waits awake for an offer while there is a core for that; returns false where the helper is to
  // park.
  bool Linger(Helper& helper);
  // Returns whether another call may have the helper now; if not, it gives itself back later.
  static bool TakeBack(Helper& helper);

  // Constant after construction.
  int cores_;
  const SteadyClock steady_clock_;
  const Clock& clock_;
  const std::chrono::nanoseconds patience_;
  const AllowedCpus cpus_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  std::vector<std::unique_ptr<LaunchWorkers>> workers_;
  // Self-synchronised.
  std::atomic<int> lingering_{0};  // helpers
  // Written under mutex_; below 0 while threads too many run.
  std::atomic<int> free_cores_{0};
  // Guarded.
  mutable Mutex mutex_;
  CondVar core_freed_;
  int calls_ GUARDED_BY(mutex_) = 0;  // calls under way or waiting for a core
  uint64_t begun_ GUARDED_BY(mutex_) = 0;
  uint64_t freed_ GUARDED_BY(mutex_) = 0;  // how often cores became free
  // A caller that found no core was given none in time; until one is free others need not try.
  bool kept_ GUARDED_BY(mutex_) = false;
  Helper* free_helpers_ GUARDED_BY(mutex_) = nullptr;
  std::vector<LaunchWorkers*> free_workers_ GUARDED_BY(mutex_);
};

// The former name, for programs that embed the engine.
using CorePool [[deprecated("its name is HelperPool")]] = HelperPool;

}  // namespace reprise
