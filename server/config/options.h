// Options: the command line of `reprised`, parsed and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/gemm_provider.h"
#include "runtime/engine/types/metrics_triggers.h"
#include "runtime/ops/kit/parallelism.h"
#include "server/config/config_strictness.h"
#include "server/config/log_levels.h"

namespace reprise {

enum class DeviceKind { kCpu, kReference };
// When models are loaded: all at the start; on request; as their folders change.
enum class ModelControl { kNone, kExplicit, kPoll };
// Whom the server tells its load: nobody; answers to requests that ask; every answer; streams
// alone.
enum class LoadReportMode { kOff, kRequest, kAlways, kOob };
enum class LogFormat { kText, kJson };

// Where a face of the server listens. Port 0 asks for any free port; the log says which it was.
struct Endpoint {
  std::string address = "127.0.0.1";
  int port = 0;

  // Reads ADDRESS:PORT; an IPv6 address may stand in brackets. INVALID_ARGUMENT quotes `text`.
  static absl::StatusOr<Endpoint> Parse(absl::string_view text);
};

// How a face of the server is encrypted. Files are PEM, and are read again when they change.
struct TlsOptions {
  bool use = false;
  bool mutual = false;      // clients must show a certificate that `root` has signed
  std::string certificate;  // the server's, with those that lead to its root
  std::string key;
  std::string root;
};

// Connections of the gRPC port. Zero: no limit, but where something else is said.
struct GrpcConnectionOptions {
  int max_connections = 0;  // 0: a third of the descriptors
  int max_streams = 1024;   // calls of one connection at a time
  int max_age_secs = 0;
  int max_age_grace_secs = 0;  // calls that are open by then have it
  int max_idle_secs = 3600;    // while there is no call
  int keepalive_time_ms = 7'200'000;
  int keepalive_timeout_ms = 20'000;
  bool keepalive_permit_without_calls = false;
  int min_ping_interval_ms = 300'000;  // a client that has no call
  int max_ping_strikes = 2;
};

struct Options {
  std::vector<std::string> model_repositories;  // at least one existing folder
  std::string variant;      // "int8": the file model_int8.onnx of models that are named alone
  std::string model_cache;  // folder of models that come from elsewhere; empty: the usual one
  int64_t max_download_mb = 20'480;  // MiB of one of them
  ModelControl model_control = ModelControl::kNone;
  std::vector<std::string> load_models;  // kExplicit loads them at the start; "*": all
  int repository_poll_secs = 15;         // kPoll looks this often
  ConfigStrictness config_strictness = ConfigStrictness::kStrict;
  Endpoint grpc = {.port = 8001};
  Endpoint http = {.port = 8000};
  Endpoint metrics = {.port = 8002};
  // Ports of calls that change the server. -1: there is none, and these calls are on the others.
  Endpoint admin = {.port = -1};       // HTTP
  Endpoint admin_grpc = {.port = -1};  // gRPC
  bool has_admin_port() const { return admin.port >= 0 || admin_grpc.port >= 0; }
  std::string api_key_file;               // empty: no key is needed
  bool allow_admin = false;               // other machines may call it without a key
  bool page = true;                       // the live page at "/"
  std::vector<std::string> cors_origins;  // pages whose browsers may ask; "*": any page
  TlsOptions grpc_tls;
  TlsOptions http_tls;
  TlsOptions metrics_tls;
  GrpcConnectionOptions grpc_connections;
  int http_max_connections = 0;      // 0: a third of the descriptors
  int write_timeout_secs = 30;       // a client may read nothing of an answer
  int64_t in_flight_memory_mb = 0;   // MiB of requests and answers under way; 0: half of the memory
  int64_t connection_memory_mb = 0;  // MiB of one connection's; 0: half of that
  bool system_shared_memory = false;      // clients may have tensors in shared memory
  int64_t recipe_cache_memory_mb = 1024;  // MiB of arena layouts, launches and packed constants
  int64_t eager_cache_memory_mb = 64;     // MiB of weights prepared by eager runs; 0: they are not
                                          // kept
  int64_t arena_memory_mb = 0;            // MiB of all streams' arenas together; 0: no limit
  int64_t data_memory_mb = 0;             // MiB that data decide; 0: an eighth of the memory
  int64_t parameter_memory_mb = 0;        // MiB of all models' parameters together; 0: no limit
  std::string recipe_cache;               // folder of the recipe store; empty: none
  int64_t recipe_cache_disk_mb = 1024;    // MiB of files in it
  DeviceKind device = DeviceKind::kCpu;
  int streams = 0;             // 0: one for each CPU that the process may use
  int threads_per_stream = 0;  // 0: chosen by load, never more than the CPUs in all
  std::optional<Isa> max_isa;  // absent: whatever the CPU has
  GemmProvider gemm_provider = GemmProvider::kAuto;
  // How long a request may have to wait for the requests in front of it; 0: no limit; absent: a
  // second, or 20 replays of the largest bucket where these take longer.
  std::optional<double> max_queue_seconds;
  std::string store_key;                  // file of the key of its records; empty: none
  bool frozen = false;                    // no model captures anything for a request
  bool eager = false;                     // no model captures anything at all: they run op by op
  std::vector<std::string> op_libraries;  // files with ops that models may name
  bool strict_readiness = true;  // each model that was asked for is served, or this is not ready
  bool exit_on_error = false;    // a model of the start that cannot be loaded ends the process
  bool fail_on_compile = false;  // the exit code says whether a request compiled anything
  bool allow_empty = false;      // a repository without a model that can be served is ready
  LoadReportMode load_reports = LoadReportMode::kRequest;
  std::string instance;                   // what answers call this server; empty: nothing
  Endpoint prefix_events = {.port = -1};  // tells pages of prompts; -1: none does
  int ranks = 1, rank = 0;  // processes that compute models together, and this one's number
  Parallelism rank_parallelism = Parallelism::kTensor;
  std::string rank_address;    // where they meet: "unix:PATH" or "HOST:PORT"
  int drain_grace_secs = 2;    // requests are served for this time after the ending signal
  int exit_timeout_secs = 30;  // how long a drain may take
  LogFormat log_format = LogFormat::kText;
  LogLevels log_levels;
  bool access_log = false;           // a line for each request
  std::string trace_endpoint;        // where spans of requests go, by OTLP; empty: nowhere
  double trace_sample = 1;           // the share of requests that are traced, from 0 to 1
  std::string trace_file;            // file that captures and replays are written to; empty: none
  double audit_share = 0.001;        // share of padded answers that are computed again
  std::string audit_dir;             // folder of requests whose answers differed; empty: none
  std::string dump_graphs;           // folder of the graphs of captures; empty: none
  std::string metrics_file;          // JSON of all metrics; empty: none
  bool metrics_detail = false;       // every series, not those alone that a model needs
  MetricsTriggers metrics_triggers;  // when that is written
};

// Returns the instructions that kernels may use: those of the machine within --max-isa.
inline Isa UsedIsa(const Options& options) {
  return UsableIsa(options.max_isa.value_or(kEveryIsa));
}

}  // namespace reprise
