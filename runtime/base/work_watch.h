// WorkWatch: how long the work of a thread runs, and how much memory it allocates.
//
// A kernel that is written as plain loops runs as a whole: it cannot be interrupted from outside.
// Its outer loops say how much they are about to do (WatchWork), and where a watch is set on the
// thread it is asked, every few milliseconds, whether the result is still wanted. Large blocks that
// the work allocates by `new` are counted as well, before the allocation: copies and tables that a
// kernel needs besides its operands. The program's `new` counts them, as the daemon's does
// (server/watched_heap.cc). Where no watch is set, nothing is asked or counted.
//
//   class UntilStopped : public WorkWatch {
//     bool Ends() const override { return flag.stopped(); }
//   };
//   try { UntilStopped watch; Kernel(...); } catch (const WorkEnded&) { ... }
//
// Threads: only the thread that made it; it watches until its end, in place of the one before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace reprise {

// Thrown out of work that is to end. Work that handles std::bad_alloc handles this one, too.
class WorkEnded : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "the work was ended by its watch"; }
};

class WorkWatch {
 public:
  // Steps of a plain loop (multiplications, elements read) between two questions: some ms.
  static constexpr int64_t kStepsPerLook = int64_t{1} << 21;
  // Smaller blocks are not counted.
  static constexpr size_t kCountedBytes = size_t{1} << 20;

  // `max_bytes`: of counted blocks at once; 0: no limit.
  explicit WorkWatch(int64_t max_bytes = 0)
      : max_bytes_(max_bytes), before_(std::exchange(current_, this)) {}
  virtual ~WorkWatch() { current_ = before_; }
  WorkWatch(const WorkWatch&) = delete;
  WorkWatch& operator=(const WorkWatch&) = delete;

  // Returns the calling thread's watch; null: there is none.
  static WorkWatch* current() { return current_; }

  // Returns whether the work is to end now.
  virtual bool Ends() const = 0;
  // Returns whether WorkEnded was thrown.
  bool ended() const { return ended_; }

  // Counts `steps` steps before they run. Throws WorkEnded.
  void Take(int64_t steps) {
    left_ -= steps;
    if (left_ <= 0) [[unlikely]]
      Look();
  }
  // Called by `new` and `delete`, for blocks of kCountedBytes and more. TakeBytes throws WorkEnded.
  void TakeBytes(size_t bytes);
  void GiveBytes(size_t bytes) noexcept;

 protected:
  // Called when the work wants to hold `bytes`, more than it may, and is ended.
  virtual void OnTooMuch(int64_t /*bytes*/) {}

 private:
  void Look();

  static inline constinit thread_local WorkWatch* current_ = nullptr;

  const int64_t max_bytes_;
  WorkWatch* const before_;
  int64_t left_ = kStepsPerLook;
  int64_t bytes_ = 0;
  bool ended_ = false;
};

inline void WorkWatch::Look() {
  left_ = kStepsPerLook;
  if (!Ends()) return;
  ended_ = true;
  throw WorkEnded();
}

inline void WorkWatch::TakeBytes(size_t bytes) {
  if (max_bytes_ == 0) return;
  const auto wanted = static_cast<int64_t>(std::min(bytes, size_t{1} << 62));
  if (wanted > max_bytes_ - bytes_) {
    ended_ = true;
    OnTooMuch(wanted > INT64_MAX - bytes_ ? INT64_MAX : bytes_ + wanted);
    throw WorkEnded();
  }
  bytes_ += wanted;
}

// Takes `bytes` off; a block may have been allocated before the watch.
inline void WorkWatch::GiveBytes(size_t bytes) noexcept {
  bytes_ = std::max<int64_t>(bytes_ - static_cast<int64_t>(bytes), 0);
}

// Called by a loop before `steps` steps of it, at most some millions at a time.
inline void WatchWork(int64_t steps) {
  if (WorkWatch* const watch = WorkWatch::current(); watch != nullptr) watch->Take(steps);
}

}  // namespace reprise
