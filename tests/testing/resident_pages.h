// ResidentKib: how much of some mappings is in this process's memory.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace reprise {

// KiB over the mappings whose first line in /proc/self/smaps `wanted` takes: addresses, rights such
// as "r-xp", offset, device, inode and the file's path.
inline int64_t ResidentKib(absl::FunctionRef<bool(absl::string_view mapping)> wanted) {
  std::ifstream maps("/proc/self/smaps");
  int64_t total = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (absl::StrContains(words[0], '-')) inside = wanted(line);
    int64_t kib = 0;
    if (inside && words[0] == "Rss:" && absl::SimpleAtoi(words[1], &kib)) total += kib;
  }
  return total;
}

}  // namespace reprise
