// Facts that the operating system knows of this process and its machine, read at each scrape.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <vector>

#include "runtime/base/mutex.h"

namespace reprise {

// How busy the CPUs of the machine are, with all processes.
class MachineLoad {
 public:
  // Share of the time since the last call for which they were not idle, 0 to 1; since the boot in
  // the first one.
  double TakeBusyShare() EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  double busy_ GUARDED_BY(mutex_) = 0;  // ticks at the last call
  double all_ GUARDED_BY(mutex_) = 0;
  double share_ GUARDED_BY(mutex_) = 0;
};

// Appends the metrics of this process, and of the machine that Triton's dashboards read.
void AppendProcessMetrics(MachineLoad& load, std::vector<prometheus::MetricFamily>& families);

}  // namespace reprise
