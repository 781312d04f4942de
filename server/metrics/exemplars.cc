#include "server/metrics/exemplars.h"

#include <algorithm>

namespace reprise {

void Exemplars::Note(const std::string& metric, const Labels& labels, Exemplar exemplar) {
  MutexLock lock(mutex_);
  Ring& ring = rings_[{metric, labels}];
  ring.values[ring.written++ % kKept] = std::move(exemplar);
}

std::vector<Exemplar> Exemplars::Find(const std::string& metric, const Labels& labels) const {
  std::vector<Exemplar> found;
  MutexLock lock(mutex_);
  const auto it = rings_.find({metric, labels});
  if (it == rings_.end()) return found;
  const Ring& ring = it->second;
  for (size_t i = 0; i < std::min(ring.written, kKept); ++i) {
    found.push_back(ring.values[(ring.written - 1 - i) % kKept]);
  }
  return found;
}

}  // namespace reprise
