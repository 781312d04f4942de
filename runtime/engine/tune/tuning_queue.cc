#include "runtime/engine/tune/tuning_queue.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int64_t kMinTimesExact = 2;

}  // namespace

bool TuningWishes::Begin(uint64_t key_hash, bool exact, int64_t now_ns) {
  MutexLock lock(mutex_);
  if (wishes_.size() >= kMost && !wishes_.contains(key_hash)) {
    std::erase_if(wishes_, [](const auto& one) { return !one.second.queued; });
  }
  Wish& wish = wishes_[key_hash];
  ++wish.times;
  if (wish.queued || now_ns < wish.not_before_ns || (exact && wish.times < kMinTimesExact)) {
    return false;
  }
  wish.queued = true;
  return true;
}

void TuningWishes::End(uint64_t key_hash, const absl::Status& status, int64_t now_ns) {
  MutexLock lock(mutex_);
  const auto it = wishes_.find(key_hash);
  if (it == wishes_.end()) return;
  if (status.ok()) {
    wishes_.erase(it);
    return;
  }
  Wish& wish = it->second;
  wish.queued = false;
  wish.not_before_ns = absl::IsResourceExhausted(status) ? now_ns + wish.wait_ns : INT64_MAX;
  wish.wait_ns = std::min(2 * wish.wait_ns, kMostRetryNs);
}

size_t TuningWishes::size() const {
  MutexLock lock(mutex_);
  return wishes_.size();
}

}  // namespace reprise
