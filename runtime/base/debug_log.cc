#include "runtime/base/debug_log.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/format_text.h"

namespace reprise {

absl::string_view LogModuleName(LogModule module) {
  constexpr absl::string_view kNames[kNumLogModules] = {
      "load", "certificate", "capture", "pass", "kernel", "store", "lookup", "queue"};
  return kNames[static_cast<size_t>(module)];
}

int64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long long pages = 0;
  const int fields = std::fscanf(file, "%*d %lld", &pages);
  std::fclose(file);
  return fields == 1 ? static_cast<int64_t>(pages) * sysconf(_SC_PAGESIZE) : 0;
}

void Phase::Begin(DebugLog* log, LogModule module, std::string name) {
  log_ = log;
  module_ = module;
  name_ = std::move(name);
  if (log->Wants(module)) {
    log->Say(module, "begin " + name_);
    start_rss_ = ResidentBytes();
  }
  start_ns_ = SteadyClock().NowNs();
}

void Phase::End() {
  DebugLog* const log = std::exchange(log_, nullptr);
  if (log == nullptr) return;
  const int64_t end_ns = SteadyClock().NowNs();
  if (log->Wants(module_)) {
    const int64_t rss = start_rss_ == 0 ? 0 : ResidentBytes() - start_rss_;
    log->Say(module_, FormatText("end %s (%.3f ms; RSS %s%d kB)", name_,
                                 static_cast<double>(end_ns - start_ns_) * 1e-6,
                                 std::string(rss < 0 ? "-" : "+"), (rss < 0 ? -rss : rss) / 1024));
  }
  if (log->traces()) log->OnPhase(module_, name_, start_ns_, end_ns);
}

}  // namespace reprise
