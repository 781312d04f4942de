#include "runtime/base/allowed_cpus.h"

#include <unistd.h>

#include <cerrno>

namespace reprise {

bool AllowedCpus::KeepOff(pthread_t thread, int cpu) const {
  if (cpu < 0 || cpu >= CPU_SETSIZE || forbidden_.load(std::memory_order_relaxed)) return false;
  cpu_set_t others;
  if (sched_getaffinity(getpid(), sizeof(others), &others) != 0) return false;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return false;
  const int error = pthread_setaffinity_np(thread, sizeof(others), &others);
  if (error == EPERM) forbidden_.store(true, std::memory_order_relaxed);
  return error == 0;
}

}  // namespace reprise
