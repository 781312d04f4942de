#include "runtime/engine/tune/kernel_trial.h"

#include <algorithm>
#include <utility>

namespace reprise {

KernelTrial::KernelTrial(std::vector<std::string> kernels)
    : kernels_(std::move(kernels)), runs_(kernels_.size()) {}

bool KernelTrial::Wants(size_t contender) const {
  return contender < runs_.size() && !runs_[contender].lost;
}

void KernelTrial::Add(size_t contender, int64_t ns) {
  int64_t& best = runs_[contender].ns;
  // A clock that has not moved still counts as a measurement.
  ns = std::max<int64_t>(ns, 1);
  best = best == 0 ? ns : std::min(best, ns);
}

void KernelTrial::EndRound() {
  int64_t best = 0;
  for (const Runs& runs : runs_) {
    if (runs.ns > 0 && (best == 0 || runs.ns < best)) best = runs.ns;
  }
  // The first stays: all others are compared with it.
  for (size_t i = 1; i < runs_.size(); ++i) {
    if (static_cast<double>(runs_[i].ns) > kHopeless * static_cast<double>(best)) {
      runs_[i].lost = true;
    }
  }
}

size_t KernelTrial::Best() const {
  const auto first = static_cast<double>(runs_[0].ns);
  size_t best = 0;
  for (size_t i = 1; i < runs_.size(); ++i) {
    const auto ns = static_cast<double>(runs_[i].ns);
    if (ns == 0 || ns * runs_[i].worthwhile >= first) continue;
    if (best == 0 || runs_[i].ns < runs_[best].ns) best = i;
  }
  return best;
}

}  // namespace reprise
