// MemoryBudget: a limit on bytes that several users share.
//
// Threads: all methods from any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace reprise {

class MemoryBudget {
 public:
  // `max_bytes` 0: no limit, only counted.
  explicit MemoryBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns false, and takes nothing, where less is left.
  bool Take(int64_t bytes) {
    const int64_t now = used_.fetch_add(bytes) + bytes;
    if (max_bytes_ <= 0 || now <= max_bytes_) return true;
    used_.fetch_sub(bytes);
    return false;
  }
  // Takes them without regard to the limit.
  void Add(int64_t bytes) { used_.fetch_add(bytes); }
  void Give(int64_t bytes) { used_.fetch_sub(bytes); }

  int64_t used() const { return used_; }
  int64_t left() const {
    return max_bytes_ <= 0 ? std::numeric_limits<int64_t>::max()
                           : std::max<int64_t>(max_bytes_ - used_, 0);
  }
  int64_t max_bytes() const { return max_bytes_; }

 private:
  const int64_t max_bytes_;
  std::atomic<int64_t> used_{0};
};

}  // namespace reprise
