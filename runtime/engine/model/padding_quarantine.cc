#include "runtime/engine/model/padding_quarantine.h"

#include <utility>

namespace reprise {

PaddingQuarantine::PaddingQuarantine(size_t axes)
    : axes_(std::make_unique<std::atomic<bool>[]>(axes)) {}

void PaddingQuarantine::Add(size_t axis, AxisCertificate certificate, const std::string& reason) {
  certificate.certified = false;
  certificate.reason = reason;
  auto taken = std::make_shared<const AxisCertificate>(std::move(certificate));
  MutexLock lock(mutex_);
  axes_[axis].store(true, std::memory_order_release);
  certificates_[axis].swap(taken);
}

std::shared_ptr<const AxisCertificate> PaddingQuarantine::CertificateOf(size_t axis) const {
  MutexLock lock(mutex_);
  const auto it = certificates_.find(axis);
  return it == certificates_.end() ? nullptr : it->second;
}

}  // namespace reprise
