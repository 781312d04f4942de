// ThreadTeam: a fixed group of threads that run one function together, the caller included.
//
// Between calls helpers park; within one they meet at barriers. A wait spins at most 50 us, then
// parks, so that an idle team costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace reprise {

class ThreadTeam {
 public:
  // `size` threads in all, the caller's being one of them; at least 1.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Calls `function(context, part)` on every thread, part 0 on the caller's; returns when all have.
  // Allocates nothing.
  void Run(void (*function)(void* context, int part), void* context);

  // Called by every member from within Run: returns when all have called it.
  void Barrier();

 private:
  void Work(int part);

  const int size_;
  std::vector<std::thread> helpers_;
  // Self-synchronised. A generation that grows by one wakes the helpers for a call.
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  void (*function_)(void*, int) = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
};

}  // namespace reprise
