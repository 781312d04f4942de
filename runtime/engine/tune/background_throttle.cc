#include "runtime/engine/tune/background_throttle.h"

#include <chrono>
#include <thread>
#include <utility>

#include "runtime/engine/capture/capture_pool.h"

namespace reprise {

BackgroundThrottle::BackgroundThrottle(Options options)
    : options_(std::move(options)),
      start_ns_(options_.clock->NowNs()),
      start_cpu_ns_(options_.thread_clock->NowNs()),
      seen_(options_.activity().begun),
      changed_ns_(start_ns_) {}

bool BackgroundThrottle::Quiet(int64_t now_ns) {
  const HelperPool::Activity activity = options_.activity();
  if (activity.running > 0 || activity.begun != seen_) changed_ns_ = now_ns;
  seen_ = activity.begun;
  return now_ns - changed_ns_ >= kQuietNs;
}

bool BackgroundThrottle::Wait() {
  while (!options_.stopped()) {
    const int64_t now_ns = options_.clock->NowNs();
    if (Quiet(now_ns)) return true;
    const auto elapsed = static_cast<double>(now_ns - start_ns_);
    const double share = now_ns - options_.asked_ns >= kLateNs ? kLateShare : kBusyShare;
    if (static_cast<double>(spent_ns()) <= share * elapsed) return true;
    options_.sleep(kLookEveryNs);
  }
  return false;
}

BackgroundThrottle::Options ThrottleOptions(const EngineOptions& options, int64_t asked_ns,
                                            const Clock& thread_clock,
                                            std::function<bool()> stopped) {
  return {.clock = options.clock,
          .asked_ns = asked_ns,
          .thread_clock = &thread_clock,
          .activity =
              [&options] {
                HelperPool::Activity activity;
                if (options.cores != nullptr) activity = options.cores->activity();
                if (options.captures->captures()) ++activity.running;
                return activity;
              },
          .stopped = std::move(stopped),
          .sleep = [](int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }};
}

}  // namespace reprise
