// The CPU resources of this process: the instruction sets, and the share of the CPU it was given.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/cpu/isa.h"

namespace reprise {

// The features that CPU and operating system support. The same all the time: the first call asks
// the system for what a process has to ask for.
Isa DetectIsa();

// Returns those of them that are within `cap` and that this build has code for.
Isa UsableIsa(Isa cap);

// Vendor and model as CPUID gives them: part of a device fingerprint.
std::string CpuModelName();

// Whether vectors are converted by other units than those that multiply: on AMD. Intel's converting
// takes slots from multiplications.
bool ConvertsBesideProducts();

// Bytes of a core's first-level cache of data and of its second-level cache; 0 where the system
// does not say.
int64_t FirstLevelCacheBytes();
int64_t SecondLevelCacheBytes();

// CPUs this process may keep busy: the affinity mask, cut to the cgroup's quota (v2 and v1,
// rounded up), at least 1.
int AvailableCpus();

}  // namespace reprise
