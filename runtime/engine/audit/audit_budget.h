// AuditBudget: the processor time that audits may take, as a share of all cores.
//
// Time is saved up while nothing is audited, to kMostSavedNs at most, which is there at the start.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>

#include "runtime/base/mutex.h"

namespace reprise {

class AuditBudget {
 public:
  static constexpr double kShare = 0.01;
  static constexpr int64_t kMostSavedNs = int64_t{2} * 1'000'000'000;

  // `cores`: that the process runs on. `now_ns`: by the clock of the other calls.
  AuditBudget(int cores, int64_t now_ns) : cores_(cores), since_ns_(now_ns) {}

  // Returns whether some time is left.
  bool Allows(int64_t now_ns);
  // Notes that an audit took `spent_ns` of a core.
  void Spend(int64_t spent_ns);

 private:
  // Constant after construction.
  const int cores_;
  // Guarded.
  Mutex mutex_;
  int64_t since_ns_ GUARDED_BY(mutex_);
  int64_t saved_ns_ GUARDED_BY(mutex_) = kMostSavedNs;
};

}  // namespace reprise
