#include "runtime/engine/replay/helper_pool.h"

#include <algorithm>
#include <utility>

#include "runtime/base/cpu/cpu_pause.h"
#include "runtime/engine/replay/idle_policy.h"

namespace reprise {
namespace {

// How often an idle helper checks whether it may stay awake.
constexpr int kLookUs = 2;

// How often the caller looks whether a helper has read its offer, which takes it some nanoseconds
// unless it is stopped, before it goes without it.
constexpr int kLooks = 50;

}  // namespace

HelperPool::HelperPool(int cores, std::vector<int> cpus, const Clock* clock,
                       std::chrono::nanoseconds patience)
    : cores_(std::max(cores, 1)),
      clock_(clock == nullptr ? steady_clock_ : *clock),
      patience_(patience),
      cpus_(std::move(cpus)),
      free_cores_(cores_) {
  // An exception here leaves no thread behind. A call with helpers takes two cores at least.
  helpers_.reserve(static_cast<size_t>(cores_));
  for (int i = 1; i < cores_; i += 2) {
    free_workers_.push_back(workers_.emplace_back(std::make_unique<LaunchWorkers>(cores_)).get());
  }
  for (int i = 1; i < cores_; ++i) {
    try {
      auto helper = std::make_unique<Helper>();
      helper->thread = std::thread([this, &helper = *helper] { Work(helper); });
      if (cpus_.some()) cpus_.Pin(helper->thread.native_handle());
      helper->next = free_helpers_;
      free_helpers_ = helpers_.emplace_back(std::move(helper)).get();
    } catch (...) {
      // The system has no thread for it, or no memory: replays are limited to the threads that
      // exist. Helpers that have started read free_cores_ only.
      free_cores_ = cores_ = i;
      break;
    }
  }
}

HelperPool::~HelperPool() {
  {
    MutexLock lock(mutex_);
    while (free_cores_ < cores_) core_freed_.Wait(mutex_);
  }
  for (const std::unique_ptr<Helper>& helper : helpers_) {
    helper->state.store(kStop, std::memory_order_release);
    helper->state.notify_one();
    helper->thread.join();
  }
}

std::unique_ptr<HelperPool> HelperPool::Another() const {
  constexpr std::chrono::microseconds kPatience{50};  // the helpers of the other pool want the CPUs
  return std::unique_ptr<HelperPool>(new HelperPool(cores_, cpus_.list(), nullptr, kPatience));
}

void HelperPool::AwaitCore() {
  while (free_cores_ <= 0 && !kept_) {
    const uint64_t freed = freed_;
    // Where cores were freed meanwhile and other calls took them, waiting on is worth it.
    kept_ = !core_freed_.WaitFor(mutex_, patience_) && freed_ == freed;
  }
}

void HelperPool::FreeCores(int count) {
  ++freed_;
  free_cores_ += count;
  if (free_cores_ > 0) kept_ = false;
  core_freed_.NotifyAll();
}

int HelperPool::Run(int max_threads, int steps, LaunchWorkers::Function function, void* context) {
  const AllowedCpus::OnThem on_them(cpus_);
  Helper* helpers = nullptr;
  LaunchWorkers* workers = nullptr;
  int parts = 1;
  {
    MutexLock lock(mutex_);
    ++calls_;
    ++begun_;
    AwaitCore();
    const int share = std::max(1, cores_ / calls_);
    parts = std::max(1, std::min({max_threads, share, free_cores_.load()}));
    free_cores_ -= parts;
    for (int i = 1; i < parts; ++i) {
      Helper* helper = free_helpers_;
      free_helpers_ = helper->next;
      helper->next = helpers;
      helpers = helper;
    }
    if (parts > 1) {
      workers = free_workers_.back();
      free_workers_.pop_back();
    }
  }
  if (parts == 1) {
    for (int step = 0; step < steps; ++step) function(context, step, 0, 1);
  } else {
    const LaunchWorkers::Sequence sequence = workers->Begin(function, context, steps, parts);
    int part = 1;
    const int cpu = AllowedCpus::Current();
    for (Helper* helper = helpers; helper != nullptr; helper = helper->next) {
      // A helper that is awake runs on another CPU.
      if (helper->parked.load(std::memory_order_relaxed) && helper->kept_off != cpu &&
          cpus_.KeepOff(helper->thread.native_handle(), cpu)) {
        helper->kept_off = cpu;
      }
      helper->offer = {workers, sequence, part++};
      helper->state.store(kOffered, std::memory_order_release);
      helper->state.notify_one();
    }
    workers->Lead(sequence);
  }
  int freed = 1;
  Helper* idle = nullptr;
  while (helpers != nullptr) {
    Helper* next = helpers->next;
    if (TakeBack(*helpers)) {
      helpers->next = idle;
      idle = helpers;
      ++freed;
    }
    helpers = next;
  }
  MutexLock lock(mutex_);
  --calls_;
  FreeCores(freed);
  while (idle != nullptr) {
    Helper* next = idle->next;
    idle->next = free_helpers_;
    free_helpers_ = idle;
    idle = next;
  }
  if (workers != nullptr) free_workers_.push_back(workers);
  return parts;
}

HelperPool::Activity HelperPool::activity() const {
  MutexLock lock(mutex_);
  return {.running = calls_, .begun = begun_, .lingering = lingering_};
}

bool HelperPool::TakeBack(Helper& helper) {
  uint32_t state = kOffered;
  if (helper.state.compare_exchange_strong(state, kIdle, std::memory_order_acq_rel)) return true;
  for (int i = 0; i < kLooks; ++i) {
    if (helper.state.load(std::memory_order_acquire) == kIdle) return true;
    CpuPause();
  }
  state = kReading;
  return !helper.state.compare_exchange_strong(state, kCallOver, std::memory_order_acq_rel);
}

bool HelperPool::Linger(Helper& helper) {
  IdlePolicy rule(clock_.NowNs());
  ++lingering_;
  bool offered = false;
  do {
    offered = SpinWhile(helper.state, kIdle, kLookUs);
  } while (!offered && rule.Stays(lingering_, free_cores_, clock_.NowNs()));
  if (!offered) helper.parked.store(true, std::memory_order_relaxed);
  --lingering_;
  return offered;
}

void HelperPool::Work(Helper& helper) {
  for (;;) {
    uint32_t state = helper.state.load(std::memory_order_acquire);
    if (state == kIdle) {
      if (!Linger(helper)) {
        helper.state.wait(kIdle, std::memory_order_acquire);
        helper.parked.store(false, std::memory_order_relaxed);
      }
      continue;
    }
    if (state == kStop) return;
    if (!helper.state.compare_exchange_strong(state, kReading, std::memory_order_acq_rel)) continue;
    const Offer offer = helper.offer;
    state = kReading;
    if (helper.state.compare_exchange_strong(state, kIdle, std::memory_order_acq_rel)) {
      offer.workers->Help(offer.sequence, offer.part);
      continue;
    }
    MutexLock lock(mutex_);
    helper.state.store(kIdle, std::memory_order_relaxed);
    helper.next = free_helpers_;
    free_helpers_ = &helper;
    FreeCores(1);
  }
}

}  // namespace reprise
