#include "runtime/base/allowed_cpus.h"

namespace reprise {

AllowedCpus::AllowedCpus() {
  CPU_ZERO(&cpus_);
  if (sched_getaffinity(0, sizeof(cpus_), &cpus_) != 0) CPU_ZERO(&cpus_);
}

void AllowedCpus::KeepOff(pthread_t thread, int cpu) const {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t others = cpus_;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) > 0) pthread_setaffinity_np(thread, sizeof(others), &others);
}

}  // namespace reprise
