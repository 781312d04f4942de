#include "runtime/base/cgroup.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace reprise {
namespace {

std::string ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the path of this process in a hierarchy; `controller` is empty for version 2.
std::string PathIn(const CgroupFiles& files, absl::string_view controller) {
  std::ifstream file(files.membership);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (controller.empty() ? parts[1].empty() : absl::StrContains(parts[1], controller)) {
      return parts[2];
    }
  }
  return "/";
}

// Calls read(folder) for the group of version 2 and all above it, whose limits hold as well.
void ForGroups(const CgroupFiles& files, absl::FunctionRef<void(const std::string&)> read) {
  for (std::string path = PathIn(files, "");; path.erase(path.find_last_of('/'))) {
    read(absl::StrCat(files.root, path));
    if (path.find_last_of('/') == std::string::npos) return;
  }
}

// Does the same for the group of version 1 and the root, at which a container's own group is
// mounted.
void ForOldGroups(const CgroupFiles& files, absl::string_view controller,
                  absl::FunctionRef<void(const std::string&)> read) {
  for (const std::string& path : {PathIn(files, controller), std::string("/")}) {
    read(absl::StrCat(files.root, "/", controller, path == "/" ? "" : path));
  }
}

}  // namespace

double CgroupCpus(const CgroupFiles& files) {
  double cpus = INFINITY;
  const auto take = [&](absl::string_view of_quota, absl::string_view of_period) {
    double quota, period;
    if (absl::SimpleAtod(of_quota, &quota) && absl::SimpleAtod(of_period, &period) && quota > 0 &&
        period > 0 && std::isfinite(quota)) {
      cpus = std::min(cpus, quota / period);
    }
  };
  ForGroups(files, [&](const std::string& folder) {  // "max 100000" or "150000 100000"
    const std::string line = ReadFirstLine(folder + "/cpu.max");
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() == 2) take(words[0], words[1]);
  });
  ForOldGroups(files, "cpu", [&](const std::string& folder) {
    take(ReadFirstLine(folder + "/cpu.cfs_quota_us"), ReadFirstLine(folder + "/cpu.cfs_period_us"));
  });
  return cpus;
}

int64_t CgroupMemoryBytes(const CgroupFiles& files) {
  int64_t least = std::numeric_limits<int64_t>::max();
  const auto take = [&](const std::string& file) {
    int64_t bytes;
    if (absl::SimpleAtoi(ReadFirstLine(file), &bytes) && bytes > 0) least = std::min(least, bytes);
  };
  ForGroups(files, [&](const std::string& folder) { take(folder + "/memory.max"); });
  ForOldGroups(files, "memory",
               [&](const std::string& folder) { take(folder + "/memory.limit_in_bytes"); });
  return least;
}

int64_t AvailableMemoryBytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  int64_t least = std::min(machine, CgroupMemoryBytes());
  for (const auto kind : {RLIMIT_DATA, RLIMIT_AS}) {
    rlimit limit = {};
    if (getrlimit(kind, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    least = static_cast<int64_t>(std::min<rlim_t>(static_cast<rlim_t>(least), limit.rlim_cur));
  }
  return least;
}

}  // namespace reprise
