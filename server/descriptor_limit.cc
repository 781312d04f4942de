#include "server/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace reprise {
namespace {

// More than any server needs: some systems name no limit.
constexpr rlim_t kMost = 1 << 20;

}  // namespace

int64_t DescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

int64_t RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMost));
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
  return DescriptorLimit();
}

}  // namespace reprise
