// The spare heap: a few megabytes of the program itself, for small blocks of threads that have to
// go on where the system has no memory.
//
// An allocation that fails inside a net ends the work that asked (memory_net.h). Some threads have
// no work to end: one that takes connections and sends answers, the steps of a generator, and any
// thread while an exception passes its destructors. There `new` takes small blocks from here, and
// `delete` gives them back. Code that admits work asks SpareHeapIsLow first, so that running work
// can end.
//
//   const SpareScope spare(kSpareHeapBytes);   // for this thread, while it lives
//
// Threads: any. The program's `new` and `delete` are the only callers of TakeSpare and GiveSpare
// (server/watched_heap.cc).
#pragma once

#include <cstddef>
#include <utility>

namespace reprise {

inline constexpr size_t kSpareHeapBytes = size_t{4} << 20;
// Larger blocks are not taken from here.
inline constexpr size_t kMostSpareBytes = size_t{64} << 10;

// Returns a block of `bytes`, aligned for every type; nullptr where more than `most` bytes of the
// spare heap would be taken then.
void* TakeSpare(size_t bytes, size_t most) noexcept;
// Takes `block` back. Returns false, and does nothing, where it is not of the spare heap.
bool GiveSpare(void* block) noexcept;

// Returns the bytes that are taken, with their bookkeeping.
size_t SpareBytesTaken() noexcept;
// Returns whether so much is taken that no new work should begin.
inline bool SpareHeapIsLow() noexcept { return SpareBytesTaken() > kSpareHeapBytes / 4; }

// The thread's small blocks come from the spare heap where the system has no memory, as long as no
// more than `most` bytes of it are taken by all threads together.
class SpareScope {
 public:
  explicit SpareScope(size_t most) : before_(std::exchange(most_, most)) {}
  ~SpareScope() { most_ = before_; }
  SpareScope(const SpareScope&) = delete;
  SpareScope& operator=(const SpareScope&) = delete;

  // Returns the `most` of the calling thread; 0 where it has none.
  static size_t most() noexcept { return most_; }

 private:
  static inline constinit thread_local size_t most_ = 0;

  const size_t before_;
};

}  // namespace reprise
