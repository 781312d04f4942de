#include "runtime/engine/capture/capture_pool.h"

#include <utility>

#include "runtime/base/memory_net.h"
#include "runtime/base/thread_priority.h"

namespace reprise {

CapturePool::CapturePool(const Options& options) : options_(options) {
  try {
    StartThreads();
  } catch (...) {
    Stop();
    throw;
  }
}

void CapturePool::StartThreads() {
  for (int i = 0; i < options_.urgent_threads; ++i) {
    threads_.emplace_back([this] { Work(urgent_); });
  }
  for (int i = 0; i < options_.behind_threads; ++i) {
    threads_.emplace_back([this] {
      LowerThreadPriority(options_.behind_nice);
      Work(behind_);
    });
  }
  for (int i = 0; i < options_.tuning_threads; ++i) {
    threads_.emplace_back([this] {
      LowerThreadPriority(options_.tuning_nice);
      Work(tuning_);
    });
  }
}

bool CapturePool::Add(CaptureUrgency urgency, Job job) {
  MutexLock lock(mutex_);
  Lane& lane = LaneOf(urgency);
  if (stopped_) return false;
  if (urgency != CaptureUrgency::kUrgent && lane.jobs.size() >= options_.max_queued_behind) {
    return false;
  }
  lane.jobs.push_back(std::move(job));
  lane.added.NotifyOne();
  return true;
}

void CapturePool::Work(Lane& lane) {
  std::unique_ptr<Stream> stream;
  while (true) {
    Job job;
    const int captures = &lane == &tuning_ ? 0 : 1;
    {
      MutexLock lock(mutex_);
      while (lane.jobs.empty() && !stopped_) {
        stream.reset();  // idle: gives its memory back
        lane.added.Wait(mutex_);
      }
      if (stopped_) return;
      job = std::move(lane.jobs.front());
      lane.jobs.pop_front();
      captures_running_ += captures;
    }
    if (stream == nullptr) {
      WhereMemoryAllows([&] {
        auto made = Stream::Create({.cores = nullptr,
                                    .max_arena_bytes = options_.max_arena_bytes,
                                    .huge_pages = false,  // it primes, and times, few rows
                                    .memory = options_.memory,
                                    .make_room = options_.make_room});
        if (made.ok()) stream = *std::move(made);
      });
    }
    // The waiters of a job are answered by it, in every case.
    WhereMemoryAllows([&] { job(stream.get()); });
    MutexLock lock(mutex_);
    captures_running_ -= captures;
  }
}

void CapturePool::Stop() {
  std::deque<Job> left;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    for (Lane* lane : {&urgent_, &behind_, &tuning_}) {
      for (Job& job : lane->jobs) left.push_back(std::move(job));
      lane->jobs.clear();
      lane->added.NotifyAll();
    }
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (Job& job : left) WhereMemoryAllows([&] { job(nullptr); });
}

size_t CapturePool::queued() const {
  MutexLock lock(mutex_);
  return urgent_.jobs.size() + behind_.jobs.size();
}

bool CapturePool::captures() const {
  MutexLock lock(mutex_);
  return captures_running_ > 0 || !urgent_.jobs.empty() || !behind_.jobs.empty();
}

bool CapturePool::stopped() const {
  MutexLock lock(mutex_);
  return stopped_;
}

}  // namespace reprise
