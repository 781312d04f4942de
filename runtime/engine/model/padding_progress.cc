#include "runtime/engine/model/padding_progress.h"

#include <utility>

#include "runtime/base/memory_net.h"

namespace reprise {

PaddingProgress::PaddingProgress(size_t axes)
    : axes_(axes), proved_to_(std::make_unique<std::atomic<int64_t>[]>(axes)) {
  for (size_t i = 0; i < axes; ++i) proved_to_[i] = kAnySize;
}

void PaddingProgress::Defer(size_t axis, int64_t size) {
  proved_to_[axis] = size;
  pending_ = true;
}

bool PaddingProgress::WhenDone(std::function<void()> done) {
  MutexLock lock(mutex_);
  if (!pending_) return false;
  waiting_.push_back(std::move(done));
  return true;
}

void PaddingProgress::Finish(std::map<size_t, AxisCertificate> certificates) {
  std::map<size_t, std::shared_ptr<const AxisCertificate>> finished;
  for (auto& [axis, certificate] : certificates) {
    finished[axis] = std::make_shared<const AxisCertificate>(std::move(certificate));
  }
  {
    MutexLock lock(mutex_);
    for (auto& [axis, certificate] : finished) {
      if (quarantined_.contains(axis)) continue;
      proved_to_[axis].store(certificate->certified ? kAnySize : 0, std::memory_order_release);
      finished_[axis].swap(certificate);
    }
  }
  End();
}

void PaddingProgress::Quarantine(size_t axis, AxisCertificate certificate,
                                 const std::string& reason) {
  certificate.certified = certificate.proved = false;
  certificate.reason = reason;
  auto quarantined = std::make_shared<const AxisCertificate>(std::move(certificate));
  MutexLock lock(mutex_);
  proved_to_[axis].store(0, std::memory_order_release);
  quarantined_.insert(axis);
  finished_[axis].swap(quarantined);
}

void PaddingProgress::GiveUp() {
  for (size_t axis = 0; axis < axes_; ++axis) {
    if (proved_to_[axis] != kAnySize) proved_to_[axis].store(0, std::memory_order_release);
  }
  End();
}

void PaddingProgress::End() {
  std::vector<std::function<void()>> waiting;
  {
    MutexLock lock(mutex_);
    waiting.swap(waiting_);
    pending_.store(false, std::memory_order_release);
  }
  for (const std::function<void()>& done : waiting) WhereMemoryAllows(done);
}

std::shared_ptr<const AxisCertificate> PaddingProgress::Finished(size_t axis) const {
  MutexLock lock(mutex_);
  const auto it = finished_.find(axis);
  return it == finished_.end() ? nullptr : it->second;
}

}  // namespace reprise
