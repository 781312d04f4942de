#include "runtime/engine/thread_team.h"

#include <immintrin.h>

#include <chrono>

namespace reprise {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);

// Returns when `value` is no longer `old`: spins for kSpin, then parks.
void WaitWhile(std::atomic<uint32_t>& value, uint32_t old) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadTeam::ThreadTeam(int size) : size_(size < 1 ? 1 : size) {
  for (int part = 1; part < size_; ++part) {
    helpers_.emplace_back([this, part] { Work(part); });
  }
}

ThreadTeam::~ThreadTeam() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::Run(void (*function)(void* context, int part), void* context) {
  if (size_ == 1) {
    function(context, 0);
    return;
  }
  function_ = function;
  context_ = context;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  function(context, 0);
  Barrier();
}

void ThreadTeam::Barrier() {
  if (size_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  WaitWhile(phase_, phase);
}

void ThreadTeam::Work(int part) {
  uint32_t seen = 0;
  while (true) {
    WaitWhile(generation_, seen);
    ++seen;  // Run() waits for everybody, so that the generation is never two ahead.
    if (stop_) return;
    function_(context_, part);
    Barrier();
  }
}

}  // namespace reprise
