#include "runtime/base/address_space.h"

#include <malloc.h>
#include <pthread.h>
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
  int64_t pages = 0;  // addresses of the process, whether they are memory or not
  std::ifstream("/proc/self/statm") >> pages;
  return std::max<int64_t>(
      0, static_cast<int64_t>(limit.rlim_cur) - pages * int64_t{sysconf(_SC_PAGESIZE)});
}

void SpareAddresses() {
  if (FreeAddressBytes() == std::numeric_limits<int64_t>::max()) return;
  mallopt(M_ARENA_MAX, 2);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, size_t{2} << 20);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

}  // namespace reprise
