// TextThreads: where texts become tokens, beside the threads that replay and those that read
// requests.
//
// Threads:   Run is safe from any thread. A task may run others.
// Ownership: the destructor drops what has not begun; tasks must not rely on running.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"

namespace reprise {

class TextThreads {
 public:
  TextThreads() = default;
  // Does what Stop does.
  ~TextThreads();
  TextThreads(const TextThreads&) = delete;
  TextThreads& operator=(const TextThreads&) = delete;

  // RESOURCE_EXHAUSTED where the system has not even one thread.
  absl::Status Start(int threads);
  // Returns how many threads Start made.
  int64_t count() const { return static_cast<int64_t>(threads_.size()); }
  // Waits for tasks that run; others never do.
  void Stop();

  // Runs `task` on one of the threads, after those before it. False where there are none, or no
  // memory.
  bool Run(std::function<void()> task) noexcept;

 private:
  void Loop();

  std::vector<std::thread> threads_;  // Start and Stop
  // Guarded.
  Mutex mutex_;
  CondVar work_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = true;
};

}  // namespace reprise
