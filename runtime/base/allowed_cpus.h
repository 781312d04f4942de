// Keeps threads of this process off one of the CPUs that the system may run them on.
//
// Threads: any.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>

namespace reprise {

class AllowedCpus {
 public:
  // Makes the system run `thread` from now on on all CPUs that the process's first thread may have
  // at the time, but `cpu`. Returns false where that leaves none or the system refuses; where it
  // forbids to ask it is not asked again.
  bool KeepOff(pthread_t thread, int cpu) const;

  // Returns the CPU that the calling thread runs on; by the time it is read it may be another one.
  static int Current() { return sched_getcpu(); }

 private:
  mutable std::atomic<bool> forbidden_{false};
};

}  // namespace reprise
