#include "runtime/engine/tune/tuning_queue.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int64_t kMinTimesExact = 2;

}  // namespace

bool TuningQueue::Begin(uint64_t key_hash, bool exact, int64_t now_ns) {
  MutexLock lock(mutex_);
  if (entries_.size() >= kMost && !entries_.contains(key_hash)) {
    std::erase_if(entries_, [](const auto& one) { return !one.second.queued; });
  }
  Entry& entry = entries_[key_hash];
  ++entry.times;
  if (entry.queued || now_ns < entry.not_before_ns || (exact && entry.times < kMinTimesExact)) {
    return false;
  }
  entry.queued = true;
  return true;
}

void TuningQueue::End(uint64_t key_hash, const absl::Status& status, int64_t now_ns) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key_hash);
  if (it == entries_.end()) return;
  if (status.ok()) {
    entries_.erase(it);
    return;
  }
  Entry& entry = it->second;
  entry.queued = false;
  entry.not_before_ns = absl::IsResourceExhausted(status) ? now_ns + entry.wait_ns : INT64_MAX;
  entry.wait_ns = std::min(2 * entry.wait_ns, kMostRetryNs);
}

size_t TuningQueue::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace reprise
