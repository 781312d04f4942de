#include "server/load_meter.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace reprise {
namespace {

constexpr double kNsPerSecond = 1e9;

double ShareOf(double part, double all) { return all > 0 ? std::clamp(part / all, 0.0, 1.0) : 0; }

}  // namespace

MachineShare ReadMachineShare(int cpus, const CgroupFiles& files) {
  MachineShare share;
  share.cpus = std::min<double>(cpus, CgroupCpus(files));
  share.memory_bytes = AvailableMemoryBytes();
  std::ifstream statm("/proc/self/statm");
  int64_t all_pages = 0, resident_pages = 0;
  statm >> all_pages >> resident_pages;
  share.resident_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  return share;
}

int64_t ProcessCpuNs() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

LoadReports::Report LoadMeter::Report(const LoadCounts& counts, const MachineShare& share) {
  enum : uint8_t { kRequests, kErrors, kBusy, kCpu };
  const auto growth = window_.Measure(
      counts.now_ns, {counts.requests, counts.errors, counts.busy_ns, counts.cpu_ns});
  const double busy = ShareOf(growth.Rate(kBusy), static_cast<double>(counts.streams));
  LoadReports::Report report;
  report.set_cpu_utilization(ShareOf(growth.Rate(kCpu), share.cpus));
  report.set_mem_utilization(
      ShareOf(static_cast<double>(share.resident_bytes), static_cast<double>(share.memory_bytes)));
  report.set_rps_fractional(growth.Rate(kRequests) * kNsPerSecond);
  report.set_eps(growth.Rate(kErrors) * kNsPerSecond);
  // Streams do not count steps of models that make tokens; CPUs do.
  report.set_application_utilization(std::max(busy, report.cpu_utilization()));
  auto& named = *report.mutable_named_metrics();
  named["queue_requests"] = static_cast<double>(counts.requests_waiting);
  named["queue_tokens"] = static_cast<double>(counts.tokens_waiting);
  named["running_tokens"] = static_cast<double>(counts.tokens_running);
  named["misses"] = static_cast<double>(counts.misses);
  if (counts.pages > 0) {
    named["pages_used"] = static_cast<double>(counts.pages_used);
    named["kv_cache_utilization"] =
        ShareOf(static_cast<double>(counts.pages_used), static_cast<double>(counts.pages));
  }
  return report;
}

}  // namespace reprise
