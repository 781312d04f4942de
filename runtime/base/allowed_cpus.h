// AllowedCpus: the CPUs that the system may run threads of this process on, and threads that are to
// keep off one of them.
//
// Threads: any. Errors: what the system refuses is as if it had not been asked.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace reprise {

class AllowedCpus {
 public:
  // Those of the calling thread.
  AllowedCpus();

  // From now on the system runs `thread` on all of them but `cpu`: of the first 1024, and where
  // there are several.
  void KeepOff(pthread_t thread, int cpu) const;

  // The one that the calling thread runs on; by the time it is read it may be another one.
  static int Current() { return sched_getcpu(); }

 private:
  cpu_set_t cpus_;
};

}  // namespace reprise
