// Daemon: all objects of the server, built in one place and handed to each other.
//
// Threads: Start, Drain and the destructor from one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/cgroup.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/device/device.h"
#include "runtime/engine/capture/capture_pool.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/metrics/metrics_file.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/types/memory_budget.h"
#include "runtime/generate/step_gate.h"
#include "server/arena_keeper.h"
#include "server/config/log_switch.h"
#include "server/config/options.h"
#include "server/counter_window.h"
#include "server/debug_lines.h"
#include "server/front_door.h"
#include "server/generate/token_calls.h"
#include "server/graph_dumps.h"
#include "server/http/http_server.h"
#include "server/http/pages.h"
#include "server/http/router.h"
#include "server/hub/text_models.h"
#include "server/load_meter.h"
#include "server/load_reports.h"
#include "server/log.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/metrics_observer.h"
#include "server/prefixes/prefix_publisher.h"
#include "server/repository/generation_loop.h"
#include "server/repository/readiness.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"
#include "server/request_log.h"
#include "server/requests/inference.h"
#include "server/requests/sequence_keeper.h"
#include "server/rpc/rpc_server.h"
#include "server/server_events.h"
#include "server/shared_memory/shared_regions.h"
#include "server/store_keeper.h"
#include "server/text/text_threads.h"
#include "server/trace_file.h"
#include "server/trace_sender.h"
#include "server/transport/byte_account.h"

namespace reprise {

class Daemon {
 public:
  // Called at most once, from any thread, when the server is to end by itself: --exit-on-error.
  using OnFatal = std::function<void(const absl::Status& why)>;

  // Binds the ports, then loads the models in the background; health says when they are loaded.
  // Errors: a port that cannot be bound, a repository that cannot be read, memory or threads that
  // the system does not have. `log` outlives the daemon.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Options& options,
                                                       const std::string& version, Log& log,
                                                       OnFatal on_fatal);
  // Returns the time within which the process is to end once it is told to:
  // Options::drain_grace_secs and Options::exit_timeout_secs, and a few seconds where these give
  // requests less.
  static std::chrono::seconds ExitTime(const Options& options);

  // Returns the recipes that were compiled for requests once the server was ready; counted with
  // --fail-on-compile.
  int64_t late_compiles() const { return late_compiles_; }

  // Drops requests that still wait; finishes the replays that run.
  ~Daemon();

  // Makes the server not ready. Requests are served on for Options::drain_grace_secs, so that
  // load balancers can see that; then new ones are refused, and waiting or running ones are
  // answered. Requests not answered a moment before Options::exit_timeout_secs are over are
  // dropped. `on_step` is told the next thing waited for, up to the end of the destructor: a
  // watchdog can say where it hung.
  void Drain(std::function<void(const char* step)> on_step);

 private:
  Daemon(const Options& options, const std::string& version, Log& log, OnFatal on_fatal,
         std::unique_ptr<const Device> device, std::unique_ptr<TraceFile> trace);
  void OnCapture(const MissRecord& record);
  void OnReplay(const std::string& model, const ReplayRecord& record);
  absl::Status OpenPorts();
  absl::StatusOr<std::unique_ptr<RpcServer>> OpenGrpc(const Endpoint& endpoint, bool is_admin_port);
  absl::Status OpenHttp();
  // Returns the ports of gRPC and of HTTP; 0 until they are open.
  std::pair<int, int> Ports() const {
    if (!ports_are_open_) return {0, 0};
    return {rpc_->port(), http_->port()};
  }
  absl::Status StartStreams();
  absl::Status MeetRanks();
  // Does a loader thread's work: a version and its queue.
  absl::StatusOr<std::shared_ptr<const Servable>> LoadModel(const ModelVersion& model,
                                                            const std::string& folder,
                                                            const ModelSettings& settings,
                                                            const NewWeights& weights);
  // Gives a loaded model the queues of its requests.
  void OpenQueueOf(const ModelVersion& model, Servable& servable);
  void OnSettled();
  // Waits until no model makes tokens; sequences left at `end` are ended.
  void FinishGenerations(std::chrono::steady_clock::time_point end);
  void Leave();
  void OnReadiness(const Readiness& readiness);
  // Returns the recipes that the newest version of `model` has captured.
  int64_t CapturesOf(const std::string& model);
  // Returns nullptr where requests are not traced.
  Tracer* tracer() const { return traces_ == nullptr ? nullptr : &traces_->tracer(); }
  // Sets the gauges of waiting and running requests.
  void MeasureLoad();
  // Returns the load as balancers read it.
  LoadReports::Report ReportLoad();
  // Counts a stream that is stuck (1), or one that has come back (-1).
  void CountStuck(int more, const StuckRun& run);
  static std::chrono::seconds TimeAfterGrace(const Options& options) {
    return std::max(std::chrono::seconds(options.exit_timeout_secs), std::chrono::seconds(3));
  }

  // Constant after construction; each may use those above it.
  const Options options_;
  const std::string version_;
  const std::unique_ptr<TraceFile> trace_;  // null: none is kept
  LogSwitch& log_levels_;
  Log& log_lines_;
  const LogFunction log_;
  DebugLines debug_;
  const RequestLog request_log_;
  const OnFatal on_fatal_;
  const GraphDumps graph_dumps_;
  const int64_t started_ns_;
  SteadyClock clock_;
  const std::string device_text_;  // "cpu avx512_vnni"
  Catalogue catalogue_;
  std::unique_ptr<MetricsFile> metrics_file_;
  MetricsObserver observer_;
  const std::unique_ptr<TraceSender> traces_;        // null: requests are not traced
  const std::unique_ptr<PrefixPublisher> prefixes_;  // null: no router is told
  CountingEvents events_;
  ServerState state_;
  CounterWindow<1> busy_;
  const std::unique_ptr<const Device> device_;
  HelperPool cores_;
  MemoryBudget arena_memory_;
  MemoryBudget data_memory_;
  StepGate step_gate_;
  std::unique_ptr<RankHub> ranks_;  // null: this server computes its models alone
  LoadMeter load_meter_;
  LoadReports load_reports_;
  ArenaKeeper arenas_;
  StoreKeeper store_;
  CapturePool captures_;
  Engine engine_;
  RequestScheduler scheduler_;
  SequenceKeeper sequences_{clock_};
  Mutex generations_mutex_;
  // Those of all loads: a version that was unloaded may still make tokens.
  std::vector<std::weak_ptr<GenerationLoop>> generations_ GUARDED_BY(generations_mutex_);
  TextModels texts_;
  Repository repository_;
  ReadinessProbe readiness_;
  const ByteAccount in_flight_;             // requests and answers of all ports
  std::unique_ptr<SharedRegions> regions_;  // null without --system-shared-memory
  Inference inference_;
  TokenCalls tokens_;
  TextThreads text_threads_{AvailableMemoryBytes() / 8};
  MemoryBudget held_texts_{AvailableMemoryBytes() / 8};  // see TextContext
  std::unique_ptr<RequestDispatcher> dispatcher_;
  std::unique_ptr<FrontDoor> door_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<RpcServer> admin_rpc_;              // null where no port is its own
  MemoryBudget parsing_{AvailableMemoryBytes() / 4};  // see JsonDocument
  Router http_router_;
  Router metrics_router_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<HttpServer> admin_;  // null where no port is its own
  std::unique_ptr<HttpServer> metrics_;
  std::atomic<bool> ports_are_open_{false};
  std::atomic<int64_t> late_compiles_{0};
  std::atomic<int64_t> misses_{0};  // recipes that were captured for requests
  std::function<void(const char* step)> on_step_ = [](const char*) {};
};

}  // namespace reprise
