#include "runtime/engine/core_pool.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>

namespace reprise {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);

// Returns when `value` is no longer `old`: spins for kSpin, then parks.
void SpinWhile(std::atomic<uint32_t>& value, uint32_t old) {
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

void ThreadTeam::Barrier() {
  if (size_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  SpinWhile(phase_, phase);
}

CorePool::CorePool(int cores) : cores_(std::max(cores, 1)), free_cores_(cores_) {
  for (int i = 1; i < cores_; ++i) {
    Helper& helper = *helpers_.emplace_back(std::make_unique<Helper>());
    helper.next = free_helpers_;
    free_helpers_ = &helper;
    helper.thread = std::thread([&helper] { Work(helper); });
  }
}

CorePool::~CorePool() {
  for (const std::unique_ptr<Helper>& helper : helpers_) {
    helper->team = nullptr;
    helper->calls.fetch_add(1, std::memory_order_release);
    helper->calls.notify_one();
    helper->thread.join();
  }
}

void CorePool::Run(ThreadTeam& team, int max_threads, ThreadTeam::Function function,
                   void* context) {
  Helper* helpers = nullptr;
  {
    MutexLock lock(mutex_);
    ++calls_;
    ++begun_;
    while (free_cores_ == 0) core_freed_.Wait(mutex_);
    const int share = std::max(1, cores_ / calls_);
    team.size_ = std::max(1, std::min({max_threads, share, free_cores_}));
    free_cores_ -= team.size_;
    for (int i = 1; i < team.size_; ++i) {
      Helper* helper = free_helpers_;
      free_helpers_ = helper->next;
      helper->next = helpers;
      helpers = helper;
    }
  }
  team.function_ = function;
  team.context_ = context;
  team.left_.store(0, std::memory_order_relaxed);
  int part = 1;
  for (Helper* helper = helpers; helper != nullptr; helper = helper->next) {
    helper->team = &team;
    helper->part = part++;
    helper->calls.fetch_add(1, std::memory_order_release);
    helper->calls.notify_one();
  }
  function(context, 0);
  team.Barrier();
  // A helper reads the team until it has left the barrier; only then may the team be used again.
  while (team.left_.load(std::memory_order_acquire) + 1 < static_cast<uint32_t>(team.size_)) {
    _mm_pause();
  }
  MutexLock lock(mutex_);
  --calls_;
  free_cores_ += team.size_;
  while (helpers != nullptr) {
    Helper* next = helpers->next;
    helpers->next = free_helpers_;
    free_helpers_ = helpers;
    helpers = next;
  }
  core_freed_.NotifyAll();
}

CorePool::Activity CorePool::activity() const {
  MutexLock lock(mutex_);
  return {.running = calls_, .begun = begun_};
}

void CorePool::Work(Helper& helper) {
  for (uint32_t seen = 0;; ++seen) {
    helper.calls.wait(seen, std::memory_order_acquire);
    ThreadTeam* team = helper.team;
    if (team == nullptr) return;
    team->function_(team->context_, helper.part);
    team->Barrier();
    team->left_.fetch_add(1, std::memory_order_release);
  }
}

}  // namespace reprise
