#include "server/utilization_meter.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int64_t kWindowNs = 10'000'000'000;
// Calls that come more often than this add no sample: their number is bounded.
constexpr int64_t kBetweenSamplesNs = 500'000'000;

}  // namespace

double UtilizationMeter::Measure(int64_t now_ns, int64_t busy_ns, int64_t streams) {
  MutexLock lock(mutex_);
  while (samples_.size() > 1 && now_ns - samples_[1].now_ns >= kWindowNs) samples_.pop_front();
  double share = 0;
  if (!samples_.empty() && now_ns > samples_.front().now_ns && streams > 0) {
    const Sample& before = samples_.front();
    share = static_cast<double>(busy_ns - before.busy_ns) /
            (static_cast<double>(now_ns - before.now_ns) * static_cast<double>(streams));
  }
  if (samples_.empty() || now_ns - samples_.back().now_ns >= kBetweenSamplesNs) {
    samples_.push_back({now_ns, busy_ns});
  }
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace reprise
