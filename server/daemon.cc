#include "server/daemon.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/address_space.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/base/format_text.h"
#include "runtime/base/heap.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/program_pages.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/reference/reference_device.h"
#include "runtime/recipe/scratch.h"
#include "server/fetch/store_key.h"
#include "server/metrics/compilations.h"
#include "server/model_bringer.h"
#include "server/port_options.h"
#include "server/repository/model_loader.h"
#include "server/requests/queue.h"
#include "server/requests/stages.h"
#include "server/resource_shares.h"

namespace reprise {
namespace {

#if defined(__clang__)
constexpr char kCompiler[] = __VERSION__;
#else
constexpr char kCompiler[] = "gcc " __VERSION__;
#endif

// Without OpenBLAS other kernels serve, more slowly where OpenBLAS is the best there is; a user who
// asked for it by name gets an error.
absl::StatusOr<std::unique_ptr<const Device>> MakeDevice(const Options& options, int max_threads,
                                                         const LogFunction& log) {
  if (options.device == DeviceKind::kReference) return std::make_unique<ReferenceDevice>();
  auto device =
      std::make_unique<CpuDevice>(CpuDeviceOptions{.max_isa = options.max_isa.value_or(kEveryIsa),
                                                   .gemm_provider = options.gemm_provider,
                                                   .max_threads = max_threads});
  if (const absl::Status status = device->openblas_status(); !status.ok()) {
    if (options.gemm_provider == GemmProvider::kOpenBlas) {
      return absl::Status(status.code(),
                          absl::StrCat("--gemm-provider openblas: ", status.message()));
    }
    log(LogLevel::kWarning,
        absl::StrCat("products that need OpenBLAS run by slower kernels: ", status.message()));
  }
  return device;
}

std::string DeviceText(const Options& options) {
  if (options.device == DeviceKind::kReference) return "reference";
  return absl::StrCat("cpu ", IsaName(UsedIsa(options)));
}

BuildInfo MakeBuildInfo(const Options& options, const std::string& version) {
  return {.version = version,
          .compiler = kCompiler,
          .isa = std::string(IsaName(UsedIsa(options))),
          .cpu = CpuModelName()};
}

// The size of address space to start with, and the part that must be left of it for connections and
// models when the streams have theirs. The gRPC library ends the process where it gets no thread.
constexpr int64_t kLeastAddressBytes = int64_t{256} << 20;
constexpr int64_t kLeastAddressBytesBesideStreams = int64_t{160} << 20;
// A stream's arena and its thread, at the least.
constexpr int64_t kLeastAddressBytesOfStream = int64_t{12} << 20;

absl::Status FewAddresses(int64_t left, int64_t needed, int streams) {
  return absl::ResourceExhaustedError(
      absl::StrCat("starting: ", left, " bytes of addresses are left (ulimit -v), at least ",
                   needed, " are needed with ", streams, " streams (--streams)"));
}

std::function<void(const Recipe&, const RecipeGraphs&)> GraphsFunction(const GraphDumps& dumps) {
  if (!dumps.wanted()) return nullptr;
  return
      [&dumps](const Recipe& recipe, const RecipeGraphs& graphs) { dumps.Write(recipe, graphs); };
}

// Returns a capture in the fields of a JSON log. They are views of the arguments.
std::vector<LogField> CaptureFields(const MissRecord& record, const std::string& version) {
  std::vector<LogField> fields = {{"model", record.model.name},
                                  {"version", version},
                                  {"bucket", record.bucket},
                                  {"binding", record.binding},
                                  {"recipe", record.recipe},
                                  {"reason", CompileReasonName(record.reason)},
                                  {"total_us", record.phases.total_ns() / 1000},
                                  {"waiters", record.num_waiters},
                                  {"longest_wait_us", record.longest_wait_ns / 1000},
                                  {"recipe_bytes", record.recipe_bytes}};
  if (!record.nearest.empty()) fields.push_back({"nearest", record.nearest});
  if (!record.cause.empty()) fields.push_back({"cause", record.cause});
  return fields;
}

}  // namespace

Daemon::Daemon(const Options& options, const std::string& version, Log& log, OnFatal on_fatal,
               std::unique_ptr<const Device> device, std::unique_ptr<TraceFile> trace)
    : options_(options),
      version_(version),
      trace_(std::move(trace)),
      log_levels_(log.levels()),
      log_lines_(log),
      log_(log.function()),
      debug_(log, trace_.get()),
      request_log_(log, options.access_log),
      on_fatal_(std::move(on_fatal)),
      graph_dumps_(options.dump_graphs,
                   [this](const std::string& text) { log_(LogLevel::kWarning, text); }),
      started_ns_(SteadyClock().NowNs()),
      device_text_(DeviceText(options)),
      catalogue_(MakeBuildInfo(options, version)),
      observer_(
          catalogue_, trace_ == nullptr
                          ? MetricsObserver::OnReplay()
                          : [this](const std::string& model,
                                   const ReplayRecord& record) { OnReplay(model, record); }),
      traces_(TraceSender::Open(options, version, catalogue_.server(), log_)),
      prefixes_(options.prefix_events.port < 0
                    ? nullptr
                    : std::make_unique<PrefixPublisher>(options.instance)),
      events_(catalogue_, log, request_log_, prefixes_.get()),
      device_(std::move(device)),
      cores_(AvailableCpus()),
      arena_memory_(AllArenaBytes(options)),
      data_memory_(DataBytes(options)),
      step_gate_(cores_.cores()),
      load_meter_(cores_.cores()),
      load_reports_(options.load_reports, clock_, [this] { return ReportLoad(); }),
      arenas_(clock_, [this] { catalogue_.server().arena_releases->Increment(); }),
      store_(options, log_, &debug_),
      captures_({.urgent_threads = UrgentThreads(cores_.cores()),
                 .behind_threads = BehindThreads(cores_.cores()),
                 .tuning_threads = kTuningThreads,
                 .max_arena_bytes = ArenaBytes(options, cores_.cores()),
                 .memory = &arena_memory_,
                 .make_room = [this] { arenas_.ReleaseUnused(); }}),
      engine_({.device = device_.get(),
               .clock = &clock_,
               .cores = &cores_,
               .cache_bytes = options.recipe_cache_memory_mb << 20,
               .eager_cache_bytes = options.eager_cache_memory_mb << 20,
               .parameter_bytes = options.parameter_memory_mb << 20,
               .data_memory = &data_memory_,
               .store = store_.store(),
               .captures = &captures_,
               .audit_share = options.audit_share,
               .audit_dir = options.audit_dir,
               .frozen = options.frozen,
               .eager = options.eager,
               .on_primed =
                   [this](const Recipe& recipe) { arenas_.Touch(BytesInFrontOfScratch(recipe)); },
               .on_capture = [this](const MissRecord& record) { OnCapture(record); },
               .on_graphs = GraphsFunction(graph_dumps_),
               .debug = &debug_,
               .log = [this](const std::string& text) { log_(LogLevel::kInfo, text); }},
              observer_),
      scheduler_(clock_, {.on_stuck = [this](const StuckRun& run) { CountStuck(1, run); },
                          .on_end = [this](const StuckRun& run) { CountStuck(-1, run); }}),
      repository_(
          {.folders = options.model_repositories,
           .bring = ModelBringer(options_, log_),
           .control = options.model_control,
           .load_at_start = options.load_models,
           .poll_time = std::chrono::seconds(options.repository_poll_secs),
           .threads = cores_.cores(),
           .on_settled = [this] { OnSettled(); },
           .after_ready =
               [this](const Servable& servable) {
                 // Before captures and replays, which map the pages that requests need again.
                 WhereMemoryAllows([] { DropProgramPages(); });
                 // Long requests may have refused settings that short ones did not.
                 for (const std::string& unused : UnusedSettings(servable)) {
                   if (absl::c_linear_search(servable.unused_settings, unused)) continue;
                   log_(LogLevel::kWarning, unused);
                 }
                 // Memory for reading the model is not needed again soon.
                 servable.model->owner()->parameters().DropFilePages();
                 ReturnFreedMemory();
               },
           .after_unload = [] { ReturnFreedMemory(); },
           .on_change =
               [this] {
                 readiness_.Update();
                 for (RpcServer* server : {rpc_.get(), admin_rpc_.get()}) {
                   if (server != nullptr) server->RefreshHealth();
                 }
               },
           .strictness = options.config_strictness,
           .on_hint = [this](const std::string& hint) { log_(LogLevel::kWarning, hint); },
           .on_trouble =
               [this](const absl::Status& why) {
                 log_(LogLevel::kWarning,
                      absl::StrCat("the models are as they were: ", why.message()));
               }},
          [this](const ModelVersion& model, const std::string& folder,
                 const ModelSettings& settings,
                 const NewWeights& weights) { return LoadModel(model, folder, settings, weights); },
          events_),
      readiness_({.strict = options.strict_readiness,
                  .allow_empty = options.allow_empty,
                  .control = options.model_control},
                 repository_, state_),
      in_flight_(InFlightLimits(options)),
      regions_(options.system_shared_memory ? std::make_unique<SharedRegions>(in_flight_.Open())
                                            : nullptr),
      inference_(RequestStages(repository_, &texts_, &text_threads_), repository_, scheduler_,
                 engine_, clock_, events_, regions_.get()),
      tokens_(repository_, state_, clock_, {.models = &texts_, .threads = &text_threads_}) {
  catalogue_.SetMemory([this]() -> MemoryUse {
    return {.arena_bytes = arenas_.held_bytes(),
            .data_bytes = data_memory_.used(),
            .parameter_bytes = engine_.parameter_bytes(),
            .in_flight_bytes = in_flight_.used(),
            .grpc_connections = ports_are_open_ ? rpc_->connections() : 0,
            .http_connections = ports_are_open_ ? http_->connections() : 0};
  });
  catalogue_.SetRefresh([this, &log] {
    MeasureLoad();
    for (const Repository::Listed& listed : repository_.List()) {
      if (listed.servable == nullptr) continue;
      ModelMetrics& metrics = catalogue_.Model(listed.version->name, listed.version->version);
      metrics.frozen->Set(listed.servable->IsFrozen() ? 1 : 0);
      metrics.asleep->Set(IsAsleep(*listed.servable) ? 1 : 0);
    }
    catalogue_.server().log_lines_dropped->Increment(static_cast<double>(log.TakeDropped()));
  });
  if (!options_.recipe_cache.empty()) catalogue_.SetStore(store_.store());
  if (options_.metrics_detail) catalogue_.ShowDetail();
  metrics_file_ = std::make_unique<MetricsFile>(
      options_.metrics_file, options_.metrics_triggers,
      [this] { return MetricsJson(catalogue_, engine_.misses(), version_); },
      [this](const std::string& text) { log_(LogLevel::kWarning, text); });
  metrics_file_->Start();
  store_.Start([this] { engine_.SaveUsage(UsageKeeper::When::kWorthwhile); });
}

void Daemon::OnCapture(const MissRecord& record) {
  log_lines_.WriteEvent(LogLevel::kInfo, MissText(record), "captured",
                        CaptureFields(record, absl::StrCat(record.model.version)));
  if (metrics_file_ != nullptr) metrics_file_->OnCapture();
  if (record.reason != CompileReason::kWarmup) ++misses_;
  if (options_.fail_on_compile && record.reason != CompileReason::kWarmup &&
      readiness_.Now().ready) {
    ++late_compiles_;
    log_(LogLevel::kError, absl::StrCat("--fail-on-compile: ", MissText(record)));
  }
  // A frozen model is ready with its first recipe.
  if (record.behind) readiness_.Update();
}

void Daemon::OnReplay(const std::string& model, const ReplayRecord& record) {
  const int64_t end_ns = clock_.NowNs();
  trace_->Add("replay", absl::StrCat("replay ", record.bucket, " of ", model),
              end_ns - record.duration_ns, end_ns,
              {{"model", model},
               {"bucket", std::string(record.bucket)},
               {"rows", absl::StrCat(record.rows)},
               {"requests", absl::StrCat(record.requests)}});
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Options& options,
                                                      const std::string& version, Log& log,
                                                      OnFatal on_fatal) {
  // Before anything takes some of them: with less than that the first model would fail.
  if (const int64_t left = FreeAddressBytes(); left < kLeastAddressBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("starting: ", left, " bytes of addresses are left (ulimit -v), at least ",
                     kLeastAddressBytes, " are needed"));
  }
  // A server that was to check its records does not serve without that.
  RETURN_IF_ERROR(ReadStoreKey(options.store_key).status());
  std::unique_ptr<TraceFile> trace;
  if (!options.trace_file.empty()) {
    ASSIGN_OR_RETURN(trace, TraceFile::Open(options.trace_file));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const Device> device,
                   MakeDevice(options, ThreadsPerStream(options, AvailableCpus()), log.function()));
  return WithinMemory(
      [] { return "starting"; },
      [&]() -> absl::StatusOr<std::unique_ptr<Daemon>> {
        std::unique_ptr<Daemon> daemon(new Daemon(options, version, log, std::move(on_fatal),
                                                  std::move(device), std::move(trace)));
        RETURN_IF_ERROR(daemon->graph_dumps_.Prepare());
        RETURN_IF_ERROR(daemon->StartStreams());
        RETURN_IF_ERROR(daemon->MeetRanks());
        RETURN_IF_ERROR(daemon->OpenPorts());
        daemon->readiness_.Watch(
            [daemon = daemon.get()](const Readiness& now) { daemon->OnReadiness(now); });
        RETURN_IF_ERROR(daemon->repository_.Start());
        return daemon;
      });
}

absl::StatusOr<std::shared_ptr<const Servable>> Daemon::LoadModel(const ModelVersion& model,
                                                                  const std::string& folder,
                                                                  const ModelSettings& settings,
                                                                  const NewWeights& weights) {
  arenas_.ReleaseAfter(settings.release_after_ms * 1'000'000);
  return LoadServable(
      {.engine = engine_,
       .version = model,
       .folder = folder,
       .settings = settings,
       .state = state_,
       .texts = &texts_,
       .gate = &step_gate_,
       .ranks = ranks_.get(),
       .open_queue = [this, &model](Servable& servable) { OpenQueueOf(model, servable); },
       .file_of = [this](const std::string& name,
                         int64_t number) { return repository_.FileOf(name, number); },
       .weights = weights});
}

void Daemon::OpenQueueOf(const ModelVersion& model, Servable& servable) {
  servable.unused_settings = UnusedSettings(servable);
  for (const std::string& unused : servable.unused_settings) log_(LogLevel::kWarning, unused);
  servable.queue = OpenQueue(engine_, scheduler_, model, servable,
                             {.max_wait_seconds = options_.max_queue_seconds,
                              .streams = static_cast<int>(arenas_.size())});
  servable.sequences = sequences_.Open(model, servable);
  if (servable.generation != nullptr) {
    MutexLock lock(generations_mutex_);
    std::erase_if(generations_, [](const auto& one) { return one.expired(); });
    generations_.push_back(servable.generation);
  }
}

absl::Status Daemon::StartStreams() {
  const int streams = options_.streams > 0 ? options_.streams : cores_.cores();
  const int threads = ThreadsPerStream(options_, cores_.cores());
  const int64_t needed = streams * kLeastAddressBytesOfStream + kLeastAddressBytesBesideStreams;
  if (const int64_t left = FreeAddressBytes(); left < needed) {
    return FewAddresses(left, needed, streams);
  }
  for (int i = 0; i < streams; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                     Stream::Create({.cores = &cores_,
                                     .max_threads = threads,
                                     .max_arena_bytes = ArenaBytes(options_, cores_.cores()),
                                     .memory = &arena_memory_,
                                     .data_memory = &data_memory_,
                                     .make_room = [this] { arenas_.ReleaseUnused(); }}));
    arenas_.Add(std::move(stream));
  }
  dispatcher_ = std::make_unique<RequestDispatcher>(
      scheduler_, streams, [this](int i, RequestScheduler::Batch& batch) {
        arenas_.Run(i, [&](Stream& stream) { inference_.Execute(batch, stream); });
      });
  if (const int64_t left = FreeAddressBytes(); left < kLeastAddressBytesBesideStreams) {
    return FewAddresses(left, kLeastAddressBytesBesideStreams, streams);
  }
  log_(LogLevel::kInfo, absl::StrCat("reprised ", version_, " on ", device_text_, ", ", streams,
                                     " streams over ", cores_.cores(), " cores"));
  return absl::OkStatus();
}

void Daemon::OnSettled() {
  int64_t ready = 0, refused = 0;
  std::vector<std::string> failed;
  for (const Repository::Listed& listed : repository_.List()) {
    ++(listed.state == ModelState::kReady ? ready : refused);
    if (listed.state != ModelState::kUnavailable) continue;
    failed.push_back(absl::StrCat("model ", QuotedText(listed.version->name), ": ",
                                  ShownText(listed.why.message(), 1024)));
  }
  if (options_.exit_on_error && !failed.empty()) {
    return on_fatal_(absl::UnavailableError(
        absl::StrCat("--exit-on-error: not loaded are ", absl::StrJoin(failed, "; "))));
  }
  state_.SetServing();
  if (state_.leaves()) return;
  log_(LogLevel::kInfo,
       FormatText("ready: %d models, %d refused, after %.1f s; grpc %s, http %s, metrics %s", ready,
                  refused, static_cast<double>(clock_.NowNs() - started_ns_) * 1e-9,
                  HostAndPort(options_.grpc.address, rpc_->port()),
                  HostAndPort(options_.http.address, http_->port()),
                  HostAndPort(options_.metrics.address, metrics_->port())));
  if (const Readiness now = readiness_.Now(); !now.ready) {
    log_(LogLevel::kWarning, absl::StrCat("requests should not be sent here yet: ", now.why));
  }
}

int64_t Daemon::CapturesOf(const std::string& model) {
  const auto found = repository_.Find(model, "");
  if (!found.ok()) return 0;
  const std::string& version = found->version->version;
  int64_t captures = 0;
  for (const auto& [reason, count] :
       CountsOf(model, version, catalogue_.Model(model, version)).compiles_by_reason) {
    captures += static_cast<int64_t>(count);
  }
  return captures;
}

void Daemon::OnReadiness(const Readiness& readiness) {
  for (RpcServer* server : {rpc_.get(), admin_rpc_.get()}) {
    if (server != nullptr) server->SetServing(readiness.ready);
  }
  catalogue_.server().ready->Set(readiness.ready ? 1 : 0);
  log_(LogLevel::kInfo,
       readiness.ready ? "requests may be sent here" : absl::StrCat("not ready: ", readiness.why));
}

void Daemon::MeasureLoad() {
  const RequestScheduler::Load load = scheduler_.GetLoad();
  const ServerMetrics& metrics = catalogue_.server();
  metrics.requests_waiting->Set(static_cast<double>(load.waiting.requests));
  metrics.requests_running->Set(static_cast<double>(load.running.requests));
  metrics.tokens_waiting->Set(static_cast<double>(load.waiting.tokens));
  metrics.tokens_running->Set(static_cast<double>(load.running.tokens));
  const EventCounts& counts = events_.counts();
  const int64_t pages = counts.pages;
  metrics.kv_cache_utilization->Set(
      pages == 0 ? 0 : static_cast<double>(counts.pages_used) / static_cast<double>(pages));
  metrics.utilization->Set(std::clamp(
      busy_.Measure(clock_.NowNs(), {load.busy_ns}).Rate(0) / static_cast<double>(arenas_.size()),
      0.0, 1.0));
}

LoadReports::Report Daemon::ReportLoad() {
  const RequestScheduler::Load load = scheduler_.GetLoad();
  const EventCounts& counts = events_.counts();
  return load_meter_.Measure({.now_ns = clock_.NowNs(),
                              .busy_ns = load.busy_ns,
                              .streams = static_cast<int64_t>(arenas_.size()),
                              .cpu_ns = ProcessCpuNs(),
                              .requests = counts.requests,
                              .errors = counts.errors,
                              .misses = misses_,
                              .requests_waiting = load.waiting.requests,
                              .tokens_waiting = load.waiting.tokens,
                              .tokens_running = load.running.tokens,
                              .pages_used = counts.pages_used,
                              .pages = counts.pages});
}

void Daemon::CountStuck(int more, const StuckRun& run) {
  const int64_t seconds = (clock_.NowNs() - run.since_ns) / 1'000'000'000;
  const int stuck = state_.AddStuck(more);
  catalogue_.server().stuck_streams->Set(stuck);
  const std::string which = absl::StrCat("stream ", run.stream, ", which runs ", run.queue);
  if (more > 0) {
    log_(LogLevel::kError,
         absl::StrCat(which, ", is stuck: it was told to stop ", seconds,
                      " s ago and has not; the server is not ready until it does"));
  } else {
    log_(LogLevel::kWarning,
         absl::StrCat(which, ", has ended, ", seconds, " s after it was told to stop; ", stuck,
                      " streams are stuck"));
  }
  readiness_.Update();
}

}  // namespace reprise
