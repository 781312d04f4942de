#include "runtime/base/address_space.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace reprise {

int64_t FreeAddressBytes() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<int64_t>::max();
  }
  int64_t pages = 0;  // of the process, whether they are memory or not
  std::ifstream("/proc/self/statm") >> pages;
  return std::max<int64_t>(
      0, static_cast<int64_t>(limit.rlim_cur) - pages * int64_t{sysconf(_SC_PAGESIZE)});
}

}  // namespace reprise
