#include "runtime/engine/profile.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_format.h"

namespace reprise {

std::vector<int64_t> ProfileLaunches(const Recipe& recipe, const Frame& frame, int repeats,
                                     const Clock& clock) {
  std::vector<int64_t> best(recipe.launches.size(), std::numeric_limits<int64_t>::max());
  void* operands[kMaxOperands];
  for (int repeat = 0; repeat < repeats; ++repeat) {
    LaunchArgs args = {.operands = operands,
                       .params = nullptr,
                       .frame = &frame,
                       .launch = 0,
                       .part = 0,
                       .parts = 1};
    for (const Launch& launch : recipe.launches) {
      for (size_t i = 0; i < launch.operands.size(); ++i) {
        operands[i] = Resolve(launch.operands[i], frame);
      }
      args.params = launch.params.get();
      const int64_t start = clock.NowNs();
      launch.run(args);
      best[args.launch] = std::min(best[args.launch], clock.NowNs() - start);
      ++args.launch;
    }
  }
  return best;
}

std::string ProfileTable(const Recipe& recipe, const std::vector<int64_t>& launch_ns) {
  const double total =
      std::max<double>(std::accumulate(launch_ns.begin(), launch_ns.end(), int64_t{0}), 1);
  std::string table = absl::StrFormat("%4s %-22s %9s %6s %8s %8s  %s\n", "#", "kernel", "us",
                                      "share", "GF/s", "GB/s", "shapes");
  for (size_t i = 0; i < launch_ns.size(); ++i) {
    const Launch& launch = recipe.launches[i];
    const double ns = std::max<double>(launch_ns[i], 1);
    const int bar = static_cast<int>(40 * launch_ns[i] / total + 0.5);
    absl::StrAppendFormat(&table, "%4d %-22s %9.1f %5.1f%% %8.1f %8.1f  %s %s\n", i, launch.kernel,
                          ns / 1e3, 100 * ns / total, launch.flops / ns, launch.bytes / ns,
                          launch.detail, std::string(bar, '#'));
  }
  absl::StrAppendFormat(&table, "%4s %-22s %9.1f\n", "", "all", total / 1e3);
  return table;
}

}  // namespace reprise
