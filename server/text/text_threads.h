// TextThreads: threads where texts become tokens, besides the threads that replay and the
// ones that read requests.
//
// Threads:   Run is safe from any thread. A task may run others.
//            Every task that is taken runs. Once the threads are to stop, GoOn says so, and tasks
//            end with that error, those that begin then at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "server/text/text_memory.h"

namespace reprise {

class TextThreads {
 public:
  // `max_bytes`: the memory that texts may take together while they become tokens.
  explicit TextThreads(int64_t max_bytes = INT64_MAX) : memory_(max_bytes) {}
  // Calls Stop.
  ~TextThreads();
  TextThreads(const TextThreads&) = delete;
  TextThreads& operator=(const TextThreads&) = delete;

  // RESOURCE_EXHAUSTED where the system has not even one thread.
  absl::Status Start(int threads);
  // Returns how many threads Start made.
  int64_t count() const { return static_cast<int64_t>(threads_.size()); }
  // Waits for all tasks that were taken, which GoOn tells to end.
  void Stop();
  // UNAVAILABLE once the threads are to stop: asked by tasks that take long.
  absl::Status GoOn() const {
    return stopping_ ? absl::UnavailableError("the server is stopping") : absl::OkStatus();
  }
  TextMemory& memory() { return memory_; }

  // Runs `task`, which throws nothing, on one of the threads, after those before it. False where
  // there are none, or no memory.
  bool Run(std::function<void()> task) noexcept;

 private:
  void Loop();

  std::vector<std::thread> threads_;  // Start and Stop
  std::atomic<bool> stopping_{false};
  TextMemory memory_;
  // Guarded.
  Mutex mutex_;
  CondVar work_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = true;
};

}  // namespace reprise
