// AllowedCpus: the CPUs that the system may run threads of this process on, and one to keep off.
//
// Threads: any.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <utility>
#include <vector>

namespace reprise {

class AllowedCpus {
 public:
  // `cpus`: the numbers of some CPUs; empty: all that the process's first thread may have whenever
  // that is asked for.
  explicit AllowedCpus(std::vector<int> cpus = {}) : cpus_(std::move(cpus)) {}

  // Makes the system run `thread` from now on on these CPUs, but `cpu`. Returns false where that
  // leaves none or the system refuses; where it forbids to ask it is not asked again.
  bool KeepOff(pthread_t thread, int cpu) const;
  // Makes the system run `thread` on these CPUs. Returns false where it refuses.
  bool Pin(pthread_t thread) const;
  // Returns whether they are some CPUs, not all.
  bool some() const { return !cpus_.empty(); }
  const std::vector<int>& list() const { return cpus_; }  // empty: all
  // Returns the first of `cpus` that the process's first thread may not have; -1: there is none.
  static int Forbidden(const std::vector<int>& cpus);

  // The calling thread is on these CPUs while it lives, and then on those where it was before.
  // Nothing changes where they are all.
  class OnThem {
   public:
    explicit OnThem(const AllowedCpus& cpus);
    ~OnThem();
    OnThem(const OnThem&) = delete;
    OnThem& operator=(const OnThem&) = delete;

   private:
    bool moved_ = false;
    cpu_set_t before_ = {};
  };

  // Returns the CPU that the calling thread runs on; by the time it is read it may be another one.
  static int Current() { return sched_getcpu(); }

 private:
  // Returns the set of them; false where the system does not tell.
  bool Read(cpu_set_t& set) const;

  const std::vector<int> cpus_;
  mutable std::atomic<bool> forbidden_{false};
};

}  // namespace reprise
