// TextMemory: the memory of texts while they become tokens, from one limit for all of them
// together.
//
// A text waits until its share is free. A share is never more than all there is, so that a long
// text on a small machine waits until it is alone, rather than for ever; a lack of memory of the
// system is still an error of the tokenizer.
//
// Threads: all methods from any. A thread that waits holds no share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/base/go_on.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"

namespace reprise {

class TextMemory {
 public:
  // A share, given back at its end.
  class Share {
   public:
    Share(TextMemory& memory, int64_t bytes) : memory_(&memory), bytes_(bytes) {}
    Share(Share&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (memory_ != nullptr) memory_->Give(bytes_);
    }

   private:
    TextMemory* memory_;
    int64_t bytes_;
  };

  explicit TextMemory(int64_t max_bytes) : max_bytes_(std::max<int64_t>(max_bytes, 1)) {}

  // Waits until `bytes` are free, and asks `go_on` meanwhile, whose errors it returns.
  absl::StatusOr<Share> Wait(int64_t bytes, const std::function<absl::Status()>& go_on) {
    bytes = std::min(bytes, max_bytes_);
    MutexLock lock(mutex_);
    while (bytes > max_bytes_ - used_) {
      RETURN_IF_ERROR(GoesOn(go_on));
      given_.WaitFor(mutex_, std::chrono::milliseconds(20));
    }
    used_ += bytes;
    return Share(*this, bytes);
  }

 private:
  void Give(int64_t bytes) {
    MutexLock lock(mutex_);
    used_ -= bytes;
    given_.NotifyAll();
  }

  const int64_t max_bytes_;
  Mutex mutex_;
  CondVar given_;
  int64_t used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
