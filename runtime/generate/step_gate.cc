#include "runtime/generate/step_gate.h"

#include <algorithm>
#include <limits>

namespace reprise {

StepGate::Member::Member(StepGate& gate) : gate_(gate) {
  MutexLock lock(gate.mutex_);
  gate.members_.push_back(this);
}

StepGate::Member::~Member() {
  gate_.End(*this);
  MutexLock lock(gate_.mutex_);
  std::erase(gate_.members_, this);
}

WeightedShare& StepGate::Of(const std::string& key, double weight) {
  MutexLock lock(mutex_);
  WeightedShare& share = keys_[key];
  share.weight = weight;
  return share;
}

void StepGate::Enter(WeightedShare& key) {
  MutexLock lock(mutex_);
  use_of_keys_.Enter(key);
}

void StepGate::Leave(WeightedShare& key) {
  MutexLock lock(mutex_);
  use_of_keys_.Leave(key);
}

std::pair<double, double> StepGate::Had(const Member& member) {
  double least = std::numeric_limits<double>::max();
  for (const WeightedShare* key : member.keys_) least = std::min(least, key->had);
  return {least, member.model_.had};
}

StepGate::Member* StepGate::NextLocked() {
  Member* next = nullptr;
  for (Member* member : members_) {
    if (member->waits_ && (next == nullptr || Had(*member) < Had(*next))) next = member;
  }
  return next;
}

void StepGate::GiveLocked(Member& member) {
  member.waits_ = false;
  member.holds_ = true;
  member.given_.NotifyOne();
}

void StepGate::Begin(Member& member, absl::Span<WeightedShare* const> keys) {
  MutexLock lock(mutex_);
  member.keys_.assign(keys.begin(), keys.end());
  if (member.model_.present == 0) use_of_models_.Enter(member.model_);
  Member* const next = NextLocked();
  if (member.holds_) {
    if (next == nullptr || Had(member) <= Had(*next)) return;
    member.holds_ = false;
    GiveLocked(*next);
  } else if (free_ > 0) {  // Then none waits.
    --free_;
    member.holds_ = true;
    return;
  }
  member.waits_ = true;
  while (!member.holds_) member.given_.Wait(mutex_);
}

void StepGate::Charge(Member& member, absl::Span<const std::pair<WeightedShare*, int64_t>> times) {
  MutexLock lock(mutex_);
  for (const auto& [key, ns] : times) {
    use_of_keys_.Serve(*key, ns);
    use_of_models_.Serve(member.model_, ns);
  }
}

void StepGate::End(Member& member) {
  MutexLock lock(mutex_);
  if (!member.holds_) return;
  member.holds_ = false;
  use_of_models_.Leave(member.model_);
  Member* const next = NextLocked();
  if (next == nullptr) {
    ++free_;
  } else {
    GiveLocked(*next);
  }
}

}  // namespace reprise
