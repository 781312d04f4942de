// The CPU resources of this process: the instruction sets, and the share of the CPU it was given.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/cpu/isa.h"

namespace reprise {

// Returns the features that CPU and operating system support. The result never changes: the first
// call asks the system for the features that a process has to request.
Isa DetectIsa();

// Returns the detected features that are within `cap` and that this build has code for.
Isa UsableIsa(Isa cap);

// Returns vendor and model as CPUID gives them: part of a device fingerprint.
std::string CpuModelName();

// Returns whether vectors are converted by other units than those that multiply: on AMD. Intel's
// converting takes slots from multiplications.
bool ConvertsBesideProducts();

// Returns the bytes of a core's first-level cache of data or of its second-level cache; 0 where the
// system does not say.
int64_t FirstLevelCacheBytes();
int64_t SecondLevelCacheBytes();

// Returns how many CPUs this process may keep busy: the affinity mask, cut to the cgroup's quota
// (v2 and v1, rounded up), at least 1.
int AvailableCpus();

}  // namespace reprise
