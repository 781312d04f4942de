// The limits that the control group of this process sets. The files are described in the Linux
// kernel's admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1; a container sees its own group as
// the root.
//
// Threads: any. Read again at each call: limits of a running container may change.
#pragma once

#include <cstdint>
#include <string>

namespace reprise {

struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

// Returns the CPUs of the quota; infinity where there is none.
double CgroupCpus(const CgroupFiles& files = {});

// Returns bytes of memory; the largest int64 where there is no limit.
int64_t CgroupMemoryBytes(const CgroupFiles& files = {});

// Returns the bytes of memory of the machine, cut to the limits of the group and of the process
// (`ulimit -d` and `-v`).
int64_t AvailableMemoryBytes();

}  // namespace reprise
