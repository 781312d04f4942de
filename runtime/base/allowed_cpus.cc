#include "runtime/base/allowed_cpus.h"

#include <unistd.h>

#include <cerrno>

namespace reprise {

bool AllowedCpus::Read(cpu_set_t& set) const {
  if (cpus_.empty()) return sched_getaffinity(getpid(), sizeof(set), &set) == 0;
  CPU_ZERO(&set);
  for (const int cpu : cpus_) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return true;
}

bool AllowedCpus::KeepOff(pthread_t thread, int cpu) const {
  if (cpu < 0 || cpu >= CPU_SETSIZE || forbidden_.load(std::memory_order_relaxed)) return false;
  cpu_set_t others;
  if (!Read(others)) return false;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return false;
  const int error = pthread_setaffinity_np(thread, sizeof(others), &others);
  if (error == EPERM) forbidden_.store(true, std::memory_order_relaxed);
  return error == 0;
}

bool AllowedCpus::Pin(pthread_t thread) const {
  cpu_set_t set;
  return Read(set) && pthread_setaffinity_np(thread, sizeof(set), &set) == 0;
}

int AllowedCpus::Forbidden(const std::vector<int>& cpus) {
  cpu_set_t all;
  if (!AllowedCpus().Read(all)) return -1;
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &all)) return cpu;
  }
  return -1;
}

AllowedCpus::OnThem::OnThem(const AllowedCpus& cpus) {
  if (!cpus.some()) return;
  const bool known = pthread_getaffinity_np(pthread_self(), sizeof(before_), &before_) == 0;
  moved_ = known && cpus.Pin(pthread_self());
}

AllowedCpus::OnThem::~OnThem() {
  if (moved_) pthread_setaffinity_np(pthread_self(), sizeof(before_), &before_);
}

}  // namespace reprise
