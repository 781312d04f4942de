#include "server/metrics/process_metrics.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "server/metrics/read_metric.h"

namespace reprise {
namespace {

// The fields of /proc/self/stat that are of use, see proc(5).
struct ProcessStat {
  double cpu_seconds = 0;
  double start_time = 0;  // seconds since 1970
  double threads = 0;
  double virtual_bytes = 0;
  double resident_bytes = 0;
  double open_fds = 0;
  // The machine's.
  double busy_share = 0;
  double memory_bytes = 0, used_memory_bytes = 0;
};

// Boot time in seconds since 1970: the start of a process is given relative to it.
double BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    if (word == "btime") {
      double seconds = 0;
      file >> seconds;
      return seconds;
    }
  }
  return 0;
}

ProcessStat ReadStat() {
  ProcessStat stat;
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return stat;
  // The name of the process is in parentheses and may hold spaces; fields are counted after it.
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return stat;
  std::istringstream rest(line.substr(end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  // proc(5) counts from 1 and the state, its field 3, is the first one here.
  auto number = [&fields](size_t field) {
    return field - 3 < fields.size() ? std::strtod(fields[field - 3].c_str(), nullptr) : 0.0;
  };
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  stat.cpu_seconds = (number(14) + number(15)) / ticks;
  stat.threads = number(20);
  stat.start_time = BootTime() + number(22) / ticks;
  stat.virtual_bytes = number(23);
  stat.resident_bytes = number(24) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return stat;
}

double OpenFds() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // excludes the descriptor that reads the folder
}

void ReadMemory(ProcessStat& stat) {
  std::ifstream file("/proc/meminfo");  // lines such as "MemTotal:  24000000 kB"
  std::string name, unit;
  double kilobytes = 0, available = 0;
  while (file >> name >> kilobytes && std::getline(file, unit)) {
    if (name == "MemTotal:") stat.memory_bytes = kilobytes * 1024;
    if (name == "MemAvailable:") available = kilobytes * 1024;
  }
  stat.used_memory_bytes = stat.memory_bytes - available;
}

// THE table of the operating system's metrics.
struct ProcessRow {
  ReadMetric head;
  double (*read)(const ProcessStat& stat);
};

constexpr ProcessRow kProcessRows[] = {
    {{"process_resident_memory_bytes", MetricType::kGauge, "Resident memory of the process"},
     [](const ProcessStat& stat) { return stat.resident_bytes; }},
    {{"process_virtual_memory_bytes", MetricType::kGauge, "Address space of the process"},
     [](const ProcessStat& stat) { return stat.virtual_bytes; }},
    {{"process_cpu_seconds_total", MetricType::kCounter,
      "CPU time of the process, user and system"},
     [](const ProcessStat& stat) { return stat.cpu_seconds; }},
    {{"process_start_time_seconds", MetricType::kGauge,
      "Start of the process, in seconds since 1970"},
     [](const ProcessStat& stat) { return stat.start_time; }},
    {{"process_threads", MetricType::kGauge, "Threads of the process"},
     [](const ProcessStat& stat) { return stat.threads; }},
    {{"process_open_fds", MetricType::kGauge, "Open file descriptors"},
     [](const ProcessStat& stat) { return stat.open_fds; }},
    {{"nv_cpu_utilization", MetricType::kGauge, "Share of the machine's CPUs in use, 0 to 1"},
     [](const ProcessStat& stat) { return stat.busy_share; }},
    {{"nv_cpu_memory_total_bytes", MetricType::kGauge, "Memory of the machine"},
     [](const ProcessStat& stat) { return stat.memory_bytes; }},
    {{"nv_cpu_memory_used_bytes", MetricType::kGauge, "Memory of the machine in use"},
     [](const ProcessStat& stat) { return stat.used_memory_bytes; }},
};

}  // namespace

double MachineLoad::TakeBusyShare() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double ticks[8] =
      {};  // user, nice, system, idle, waiting for a disk, interrupts, soft ones, stolen
  file >> cpu;
  for (double& one : ticks) file >> one;
  double all = 0;
  for (const double one : ticks) all += one;
  const double busy = all - ticks[3] - ticks[4];
  MutexLock lock(mutex_);
  // Scrapes within a tick see the same.
  if (all > all_) share_ = (busy - busy_) / (all - all_);
  busy_ = busy;
  all_ = all;
  return share_;
}

void AppendProcessMetrics(MachineLoad& load, std::vector<prometheus::MetricFamily>& families) {
  ProcessStat stat = ReadStat();
  stat.open_fds = OpenFds();
  stat.busy_share = load.TakeBusyShare();
  ReadMemory(stat);
  for (const ProcessRow& row : kProcessRows) families.push_back(FamilyOf(row.head, row.read(stat)));
}

}  // namespace reprise
