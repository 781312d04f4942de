// CapturePool: the threads that captures run on, so that no replay waits for one.
//
// Urgent jobs are captures that a request waits for, and captures for better buckets, one at a
// time, which would otherwise take long to be in force; they run at the process's own priority. The
// others run in the background, on threads that are nicer than the threads of replays: under
// saturation they get a small share of a core (nice 10 is about a tenth), and nothing while there
// is no job. Tuning has a thread of its own, so that no capture waits for it; it holds itself back
// (see BackgroundThrottle), and is less nice so that it gets the little that it takes.
//
// Each thread has a stream of its own to prime recipes on, one thread wide and outside the core
// pool: a nice thread must not hold a core that a replay waits for. Its memory goes back when the
// thread runs out of jobs.
//
// Threads: all methods from any.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/engine/replay/stream.h"

namespace reprise {

enum class CaptureUrgency { kUrgent, kBehind, kTuning };

class CapturePool {
 public:
  struct Options {
    int urgent_threads = 1;
    int behind_threads = 1;
    int behind_nice = 10;  // added to the process's own
    int tuning_threads = 1;
    int tuning_nice = 5;
    size_t max_queued_behind = 1024;            // limit for captures, and for tuning
    size_t max_arena_bytes = size_t{16} << 30;  // limit for one thread
    MemoryBudget* memory = nullptr;             // see StreamOptions
    std::function<void()> make_room = [] {};
  };
  // `stream` is the thread's, or null when the pool stops before the job's turn.
  using Job = std::function<void(Stream* stream)>;

  // Throws std::system_error where the system has no thread for it.
  explicit CapturePool(const Options& options);
  ~CapturePool() { Stop(); }
  CapturePool(const CapturePool&) = delete;
  CapturePool& operator=(const CapturePool&) = delete;

  // Returns false, and the job is not kept, when the pool has stopped or too many are queued.
  bool Add(CaptureUrgency urgency, Job job);
  // Finishes the jobs that run, and calls those that wait with null. Once, from one thread.
  void Stop();
  // Returns the jobs that wait, without tuning.
  size_t queued() const;
  // Returns whether the pool has stopped; a long job polls it.
  bool stopped() const;
  // Returns whether a capture runs or waits: tuning holds itself back.
  bool captures() const;

 private:
  struct Lane {
    std::deque<Job> jobs;
    CondVar added;
  };
  Lane& LaneOf(CaptureUrgency urgency) {
    return urgency == CaptureUrgency::kUrgent   ? urgent_
           : urgency == CaptureUrgency::kBehind ? behind_
                                                : tuning_;
  }
  void StartThreads();
  void Work(Lane& lane);

  // Constant after construction.
  const Options options_;
  std::vector<std::thread> threads_;
  // Guarded.
  mutable Mutex mutex_;
  Lane urgent_;
  Lane behind_;
  Lane tuning_;
  int captures_running_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
