#include "runtime/engine/tune/background_throttle.h"

#include <utility>

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

}  // namespace reprise
