// IdlePolicy: how long a helper that has nothing to do stays awake.
//
// Replays come in rows, and waking a thread takes as long as the next one may be away. But a helper
// stays awake on a core that no call has, or shares one with a call as a thread too many: where
// more helpers linger than cores are free, it parks. It must see that twice in a row, because a
// call takes cores a moment before it offers parts, and frees them a moment after its helpers are
// through.
//
// Threads: one.
#pragma once

#include <cstdint>

namespace reprise {

class IdlePolicy {
 public:
  static constexpr int64_t kLongestNs = 50'000;

  explicit IdlePolicy(int64_t now_ns) : until_ns_(now_ns + kLongestNs) {}

  // Returns, after a look around, whether the helper stays awake for another one. `lingering`
  // counts itself.
  bool Stays(int lingering, int free_cores, int64_t now_ns) {
    crowded_ = lingering > free_cores ? crowded_ + 1 : 0;
    return crowded_ < 2 && now_ns < until_ns_;
  }

 private:
  const int64_t until_ns_;
  int crowded_ = 0;  // looks in a row
};

}  // namespace reprise
