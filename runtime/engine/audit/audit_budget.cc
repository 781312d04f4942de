#include "runtime/engine/audit/audit_budget.h"

#include <algorithm>

namespace reprise {

bool AuditBudget::Allows(int64_t now_ns) {
  MutexLock lock(mutex_);
  const auto passed = static_cast<double>(std::max<int64_t>(0, now_ns - since_ns_));
  since_ns_ = now_ns;
  saved_ns_ = std::min(kMostSavedNs, saved_ns_ + static_cast<int64_t>(passed * kShare * cores_));
  return saved_ns_ > 0;
}

void AuditBudget::Spend(int64_t spent_ns) {
  MutexLock lock(mutex_);
  saved_ns_ -= spent_ns;
}

}  // namespace reprise
