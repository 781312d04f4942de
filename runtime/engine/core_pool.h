// CorePool: the cores that replays run on.
//
// A lone replay borrows every idle core; under load each core runs a replay of its own. Each call
// of Run() takes one core for the caller's thread and, as far as there are idle ones, more for
// helper threads of the pool; never are more threads running than the pool has cores. What it gets
// is decided when it begins: the pool's cores divided by the replays under way, and no more than
// are free. A call that finds no core free waits for one.
//
// Between calls helpers park; within one they meet at barriers, where a wait spins at most 50 us
// and then parks.
//
// Threads: Run from any thread; a ThreadTeam belongs to one call at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"

namespace reprise {

// The threads of one call of CorePool::Run.
class ThreadTeam {
 public:
  // Threads in this call, the caller included.
  int size() const { return size_; }
  // Called by every thread of the team: returns when all have called it. Allocates nothing.
  void Barrier();

 private:
  friend class CorePool;

  using Function = void (*)(void* context, int part);
  Function function_ = nullptr;
  void* context_ = nullptr;
  int size_ = 1;
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  alignas(64) std::atomic<uint32_t> left_{0};  // helpers that are done with this object
};

class CorePool {
 public:
  // Starts `cores` - 1 helper threads; at least one core.
  explicit CorePool(int cores);
  ~CorePool();
  CorePool(const CorePool&) = delete;
  CorePool& operator=(const CorePool&) = delete;

  int cores() const { return cores_; }

  // Calls `function(context, part)` for every part of [0, team.size()), part 0 on the caller's
  // thread; returns when all have returned. The team has at most `max_threads` threads.
  void Run(ThreadTeam& team, int max_threads, ThreadTeam::Function function, void* context);

  struct Activity {
    int running = 0;     // calls of Run under way, or waiting for a core
    uint64_t begun = 0;  // of all times
  };
  Activity activity() const;

 private:
  struct Helper {
    std::atomic<uint32_t> calls{0};  // grows by one for each call given to it
    ThreadTeam* team = nullptr;      // of that call; nullptr: stop
    int part = 0;
    Helper* next = nullptr;  // in the free list, or in the list of a call
    std::thread thread;
  };
  static void Work(Helper& helper);

  // Constant after construction.
  const int cores_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  // Guarded.
  mutable Mutex mutex_;
  CondVar core_freed_;
  int free_cores_ GUARDED_BY(mutex_);
  int calls_ GUARDED_BY(mutex_) = 0;  // under way or waiting for a core
  uint64_t begun_ GUARDED_BY(mutex_) = 0;
  Helper* free_helpers_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace reprise
