// LoadMeter: counts of the server's work as a load report.
//
// Threads: one at a time.
#pragma once

#include <cstdint>

#include "runtime/base/cgroup.h"
#include "server/counter_window.h"
#include "server/load_reports.h"

namespace reprise {

// Counts since the start, and amounts now.
struct LoadCounts {
  int64_t now_ns = 0;
  int64_t busy_ns = 0;  // all streams together
  int64_t streams = 0;
  int64_t cpu_ns = 0;  // CPU time of the process
  int64_t requests = 0;
  int64_t errors = 0;
  int64_t misses = 0;  // recipes that were captured for requests
  int64_t requests_waiting = 0;
  int64_t tokens_waiting = 0, tokens_running = 0;
  int64_t pages_used = 0, pages = 0;
};

// The resources that the process may use, and the memory that it has taken.
struct MachineShare {
  double cpus = 1;
  int64_t memory_bytes = 1;
  int64_t resident_bytes = 0;
};

// Returns it as it is now, by files of the system. `cpus`: those that the process may run on.
MachineShare ReadMachineShare(int cpus, const CgroupFiles& files = {});
// Returns the CPU time of the process.
int64_t ProcessCpuNs();

class LoadMeter {
 public:
  // `cpus`: those that the process may run on.
  explicit LoadMeter(int cpus) : cpus_(cpus) {}

  // Returns rates of the last second, or since the call before where that is longer ago.
  LoadReports::Report Measure(const LoadCounts& counts) {
    if (read_ns_ == 0 || counts.now_ns - read_ns_ >= kReadNs) {
      share_ = ReadMachineShare(cpus_);
      read_ns_ = counts.now_ns;
    }
    return Report(counts, share_);
  }
  LoadReports::Report Report(const LoadCounts& counts, const MachineShare& share);

 private:
  static constexpr int64_t kReadNs = 1'000'000'000;  // files of the system are read this often

  const int cpus_;
  CounterWindow<4> window_{{.window_ns = 1'000'000'000, .between_samples_ns = 100'000'000}};
  MachineShare share_;
  int64_t read_ns_ = 0;
};

}  // namespace reprise
