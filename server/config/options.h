// Options: the command line of `reprised`, parsed and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/cpu_info.h"
#include "runtime/device/gemm_provider.h"
#include "server/config/log_levels.h"
#include "server/config/metrics_triggers.h"

namespace reprise {

enum class DeviceKind { kCpu, kReference };
// When models are loaded: all at the start; when somebody asks; as their folders change.
enum class ModelControl { kNone, kExplicit, kPoll };
enum class LogFormat { kText, kJson };

// Where a face of the server listens. Port 0 asks for any free port; the log says which it was.
struct Endpoint {
  std::string address = "127.0.0.1";
  int port = 0;
};

struct Options {
  std::vector<std::string> model_repositories;  // at least one existing folder
  ModelControl model_control = ModelControl::kNone;
  std::vector<std::string> load_models;  // kExplicit loads them at the start; "*": all
  int repository_poll_secs = 15;         // kPoll looks this often
  Endpoint grpc = {.port = 8001};
  Endpoint http = {.port = 8000};
  Endpoint metrics = {.port = 8002};
  int64_t recipe_cache_memory_mb = 1024;  // MiB of arena layouts, launches and packed constants
  int64_t eager_cache_memory_mb = 64;     // MiB of what eager runs prepare; 0: it is not kept
  int64_t arena_memory_mb = 0;            // MiB of all streams' arenas together; 0: no limit
  int64_t parameter_memory_mb = 0;        // MiB of all models' parameters together; 0: no limit
  std::string recipe_cache;               // folder of the recipe store; empty: none
  int64_t recipe_cache_disk_mb = 1024;    // MiB of files in it
  DeviceKind device = DeviceKind::kCpu;
  int streams = 0;             // 0: one for each CPU that the process may use
  int threads_per_stream = 0;  // 0: chosen by load, never more than the CPUs in all
  std::optional<Isa> max_isa;  // absent: whatever the CPU has
  GemmProvider gemm_provider = GemmProvider::kAuto;
  bool frozen = false;         // no model captures anything for a request
  int exit_timeout_secs = 30;  // how long a drain may take
  LogFormat log_format = LogFormat::kText;
  LogLevels log_levels;
  std::string trace_file;            // file that captures and replays are written to; empty: none
  std::string dump_graphs;           // folder of the graphs of captures; empty: none
  std::string metrics_file;          // JSON of all metrics; empty: none
  MetricsTriggers metrics_triggers;  // when that is written
};

}  // namespace reprise
