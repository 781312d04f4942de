#include "runtime/engine/replay/launch_workers.h"

#include <chrono>

#include "runtime/base/cpu/cpu_pause.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr int kSpinUs = 50;

// A whole step costs less than its parts one after another, but leaves none of them to helpers that
// come meanwhile. So for this time after the start the leader always goes part by part ...
constexpr auto kPatience = std::chrono::microseconds(200);
// ... and later while a helper has looked at one of this number of steps before.
constexpr uint32_t kRecentSteps = 8;

}  // namespace

bool SpinWhile(const std::atomic<uint32_t>& value, uint32_t old, int spin_us) {
  if (value.load(std::memory_order_acquire) != old) return true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us);
  do {
    for (int i = 0; i < 32; ++i) {
      if (value.load(std::memory_order_acquire) != old) return true;
      CpuPause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

LaunchWorkers::Sequence LaunchWorkers::Begin(Function function, void* context, int steps,
                                             int parts) {
  REPRISE_CHECK(parts >= 1 && static_cast<size_t>(parts) <= claims_.size());
  const uint32_t first = done_.load(std::memory_order_relaxed);
  // No other thread writes claims now: late ones have no step that could be taken.
  for (int part = 0; part < parts; ++part) {
    claims_[part].next.store(first, std::memory_order_relaxed);
  }
  seen_.store(first - kRecentSteps, std::memory_order_relaxed);
  return {function, context, static_cast<uint32_t>(steps), parts, first};
}

bool LaunchWorkers::Take(int part, uint32_t step) {
  std::atomic<uint32_t>& next = claims_[part].next;
  return next.load(std::memory_order_relaxed) == step &&
         next.compare_exchange_strong(step, step + 1, std::memory_order_relaxed);
}

void LaunchWorkers::Appear(uint32_t step) {
  // Not at each step, since the leader's core would fetch the line each time.
  if (step - seen_.load(std::memory_order_relaxed) < kRecentSteps / 2) return;
  seen_.store(step, std::memory_order_relaxed);
}

void LaunchWorkers::Finish(const Sequence& sequence, int parts, uint32_t step) {
  if (finished_.fetch_add(parts, std::memory_order_acq_rel) + parts < sequence.parts) return;
  finished_.store(0, std::memory_order_relaxed);
  // notify_all may be a system call although no thread waits here: the library counts waiters of
  // many addresses together. All four accesses, of here and of Await, are in one total order:
  // either this thread sees the parking one, or that one sees that the step is done.
  done_.store(step + 1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) == 0) return;
  wakes_.fetch_add(1, std::memory_order_relaxed);
  done_.notify_all();
}

void LaunchWorkers::Await(uint32_t step) {
  if (SpinWhile(done_, step, kSpinUs)) return;
  parked_.fetch_add(1, std::memory_order_seq_cst);
  done_.wait(step, std::memory_order_seq_cst);
  parked_.fetch_sub(1, std::memory_order_relaxed);
}

void LaunchWorkers::RunParts(const Sequence& sequence, int thread, uint32_t step) {
  for (int i = 0; i < sequence.parts; ++i) {
    const int part = (thread + i) % sequence.parts;
    if (!Take(part, step)) continue;
    sequence.function(sequence.context, static_cast<int>(step - sequence.first), part,
                      sequence.parts);
    Finish(sequence, 1, step);
  }
}

bool LaunchWorkers::RunWhole(const Sequence& sequence, uint32_t step) {
  int taken = 0;
  while (taken < sequence.parts && Take(taken, step)) ++taken;
  const int index = static_cast<int>(step - sequence.first);
  if (taken == sequence.parts) {
    sequence.function(sequence.context, index, 0, 1);
    Finish(sequence, taken, step);
    return true;
  }
  for (int part = 0; part < taken; ++part) {
    sequence.function(sequence.context, index, part, sequence.parts);
    Finish(sequence, 1, step);
  }
  return false;
}

void LaunchWorkers::Lead(const Sequence& sequence) {
  const auto patient_until = std::chrono::steady_clock::now() + kPatience;
  bool patient = true;
  for (uint32_t i = 0; i < sequence.steps; ++i) {
    const uint32_t step = sequence.first + i;
    if (step - seen_.load(std::memory_order_relaxed) >= kRecentSteps) {
      patient = patient && std::chrono::steady_clock::now() < patient_until;
      if (!patient && RunWhole(sequence, step)) continue;
    }
    RunParts(sequence, 0, step);
    Await(step);
  }
}

void LaunchWorkers::Help(const Sequence& sequence, int thread) {
  for (;;) {
    const uint32_t step = done_.load(std::memory_order_acquire);
    if (step - sequence.first >= sequence.steps) return;
    Appear(step);
    RunParts(sequence, thread, step);
    Await(step);
  }
}

}  // namespace reprise
