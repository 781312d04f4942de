#include "server/metrics/process_metrics.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace reprise {
namespace {

// The fields of /proc/self/stat that are of use, see proc(5).
struct ProcessStat {
  double cpu_seconds = 0;
  double start_time = 0;  // seconds since 1970
  double threads = 0;
  double virtual_bytes = 0;
  double resident_bytes = 0;
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
  // The name of the process is in parentheses and may hold spaces; fields are counted behind it.
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
  return count > 0 ? count - 1 : 0;  // without the one that reads the folder
}

}  // namespace

bool IsProcessMetric(MetricId id) {
  return id >= MetricId::kProcessResidentMemory && id <= MetricId::kProcessOpenFds;
}

void AppendProcessMetrics(std::vector<prometheus::MetricFamily>& families) {
  const ProcessStat stat = ReadStat();
  auto append = [&families](MetricId id, double value) {
    const MetricRow& row = MetricTable()[static_cast<size_t>(id)];
    prometheus::MetricFamily family;
    family.name = std::string(row.name);
    family.help = std::string(row.help);
    prometheus::ClientMetric metric;
    if (row.type == MetricType::kCounter) {
      family.type = prometheus::MetricType::Counter;
      metric.counter.value = value;
    } else {
      family.type = prometheus::MetricType::Gauge;
      metric.gauge.value = value;
    }
    family.metric.push_back(metric);
    families.push_back(std::move(family));
  };
  append(MetricId::kProcessResidentMemory, stat.resident_bytes);
  append(MetricId::kProcessVirtualMemory, stat.virtual_bytes);
  append(MetricId::kProcessCpuSeconds, stat.cpu_seconds);
  append(MetricId::kProcessStartTime, stat.start_time);
  append(MetricId::kProcessThreads, stat.threads);
  append(MetricId::kProcessOpenFds, OpenFds());
}

int64_t ResidentBytes() { return static_cast<int64_t>(ReadStat().resident_bytes); }

}  // namespace reprise
