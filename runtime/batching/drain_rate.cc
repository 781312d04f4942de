#include "runtime/batching/drain_rate.h"

#include <algorithm>
#include <cmath>

namespace reprise {
namespace {

// Older measurements have little weight.
constexpr double kMemorySeconds = 2;
// The rate is not used before this many seconds of backlog were measured.
constexpr double kLeastSeconds = 0.25;
constexpr double kSecondsPerNs = 1e-9;

}  // namespace

void DrainRate::Sums::Add(double more_tokens, double more_seconds) {
  const double kept = std::exp(-more_seconds / kMemorySeconds);
  tokens = tokens * kept + more_tokens;
  seconds = seconds * kept + more_seconds;
}

void DrainRate::OnTake(int64_t now_ns, int64_t tokens, bool more_wait) {
  if (backlogged_) {
    backlog_.Add(static_cast<double>(tokens),
                 static_cast<double>(now_ns - last_take_ns_) * kSecondsPerNs);
  }
  last_take_ns_ = now_ns;
  backlogged_ = more_wait;
}

void DrainRate::OnFinished(int64_t tokens, int64_t run_ns, int64_t streams) {
  streams_.Add(static_cast<double>(tokens), static_cast<double>(run_ns) * kSecondsPerNs /
                                                static_cast<double>(std::max<int64_t>(1, streams)));
}

double DrainRate::tokens_per_second() const {
  const Sums& sums = backlog_.seconds >= kLeastSeconds ? backlog_ : streams_;
  return sums.seconds > 0 ? sums.tokens / sums.seconds : 0;
}

}  // namespace reprise
