#include "runtime/base/cpu/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/cgroup.h"
#include "runtime/base/cpu/compiled_tiers.h"

namespace reprise {

Isa UsableIsa(Isa cap) { return WithinCompiled(DetectIsa().Within(cap)); }

int64_t FirstLevelCacheBytes() { return std::max<int64_t>(sysconf(_SC_LEVEL1_DCACHE_SIZE), 0); }
int64_t SecondLevelCacheBytes() { return std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 0); }

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  const double quota = std::ceil(CgroupCpus());
  return std::max(1, quota < allowed ? static_cast<int>(quota) : allowed);
}

}  // namespace reprise
