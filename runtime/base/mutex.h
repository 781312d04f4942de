// std::mutex with clang's thread-safety annotations: which lock guards which member is checked by
// the `tsan` preset's compiler (-Wthread-safety). std::mutex and not absl::Mutex, because the
// packaged Abseil is not instrumented and TSan then reports false races.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"  // defines GUARDED_BY, in the same sense

#if defined(__clang__)
#define REPRISE_ANNOTATION(x) __attribute__((x))
#else
#define REPRISE_ANNOTATION(x)
#endif
#define REQUIRES(...) REPRISE_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) REPRISE_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace reprise {

class REPRISE_ANNOTATION(capability("mutex")) Mutex {
 public:
  void Lock() REPRISE_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void Unlock() REPRISE_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class REPRISE_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) REPRISE_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() REPRISE_ANNOTATION(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable over Mutex. Wakes may be spurious: wait in a loop on the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false when `timeout` passed first.
  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace reprise
