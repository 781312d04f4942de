// PaddingQuarantine: the axes of a model that serves whose certificates an audit took away.
//
// Threads: all methods from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/certify/certificate.h"

namespace reprise {

class PaddingQuarantine {
 public:
  // Begins with none of `axes` axes quarantined.
  explicit PaddingQuarantine(size_t axes);

  // Takes the certificate of axis `axis` away, which was `certificate`: an answer showed that it
  // does not hold, as `reason` says. It stays so until the model is loaded again.
  void Add(size_t axis, AxisCertificate certificate, const std::string& reason);
  // Returns whether nothing is padded along `axis` any more.
  bool Contains(size_t axis) const { return axes_[axis].load(std::memory_order_acquire); }
  // Returns the certificate that says so; null where it is not quarantined.
  std::shared_ptr<const AxisCertificate> CertificateOf(size_t axis) const;

 private:
  const std::unique_ptr<std::atomic<bool>[]> axes_;
  // Guarded.
  mutable Mutex mutex_;
  std::map<size_t, std::shared_ptr<const AxisCertificate>> certificates_ GUARDED_BY(mutex_);
};

}  // namespace reprise
