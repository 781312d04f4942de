#include "server/daemon.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/address_space.h"
#include "runtime/base/cgroup.h"
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
#include "server/openapi/openapi_page.h"
#include "server/page/live_page.h"
#include "server/port_options.h"
#include "server/repository/model_loader.h"
#include "server/requests/queue.h"
#include "server/requests/stages.h"
#include "server/rest/rest_api.h"
#include "server/text_api/text_api.h"
#include "server/vision/vision_api.h"

namespace reprise {
namespace {

// How long answers that are ready may take to reach their clients.
constexpr std::chrono::seconds kFlushTime(5);
// Calls are refused until none came for this time: one that meets the closing of its connection is
// cancelled, which tells its client less. A client that keeps calling does not delay the end.
constexpr std::chrono::milliseconds kQuietTime(200);
constexpr std::chrono::seconds kLongestRefusing(2);
// Clients that are sent elsewhere may take this time to go.
constexpr std::chrono::seconds kLongestLeaving(3);

#if defined(__clang__)
constexpr char kCompiler[] = __VERSION__;
#else
constexpr char kCompiler[] = "gcc " __VERSION__;
#endif

Isa UsedIsa(const Options& options) { return UsableIsa(options.max_isa.value_or(kEveryIsa)); }

// Returns the most threads of one replay.
int ThreadsPerStream(const Options& options, int cores) {
  return options.threads_per_stream > 0 ? std::min(options.threads_per_stream, cores) : cores;
}

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

// Threads that capture.
int UrgentThreads(int cores) { return std::max(1, cores / 2); }
int BehindThreads(int cores) { return std::max(1, cores / 8); }
constexpr int kTuningThreads = 1;

// Returns the most that all arenas may take together. More than the machine or the container has
// would end the process: a quarter is left to weights and the rest.
int64_t AllArenaBytes(const Options& options) {
  if (options.arena_memory_mb > 0) return options.arena_memory_mb << 20;
  return AvailableMemoryBytes() / 4 * 3;
}

// Returns the most that requests may take together where their data decide how much.
int64_t DataBytes(const Options& options) {
  return options.data_memory_mb > 0 ? options.data_memory_mb << 20 : AvailableMemoryBytes() / 8;
}

// Returns the most that the arena of one stream, or of one thread that captures, may take.
size_t ArenaBytes(const Options& options, int cores) {
  const int streams = options.streams > 0 ? options.streams : cores;
  if (options.arena_memory_mb == 0) {
    // Where addresses are scarce, all streams together get at most half of them.
    const auto addresses = static_cast<size_t>(FreeAddressBytes()) / 2;
    return std::min({StreamOptions().max_arena_bytes, static_cast<size_t>(AllArenaBytes(options)),
                     addresses / static_cast<size_t>(std::max(streams, 4))});
  }
  const auto all = static_cast<size_t>(options.arena_memory_mb) << 20;
  return all / static_cast<size_t>(streams + UrgentThreads(cores) + BehindThreads(cores) +
                                   kTuningThreads);
}

// Returns how long requests may take to end: the steps after them have a moment of their own, so
// that all of it is done within the time of --exit-timeout-secs.
std::chrono::nanoseconds DrainTime(const Options& options) {
  const std::chrono::nanoseconds all = std::chrono::seconds(options.exit_timeout_secs);
  return all - std::min<std::chrono::nanoseconds>(all / 4, std::chrono::seconds(2));
}

// `most`, or less where `end` is near: the rest is for the steps after it.
std::chrono::nanoseconds UpTo(std::chrono::nanoseconds most,
                              std::chrono::steady_clock::time_point end) {
  const std::chrono::nanoseconds left = end - std::chrono::steady_clock::now();
  return std::clamp(left / 3, std::chrono::nanoseconds(0), most);
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

// The header of answers that says which of several servers has answered.
constexpr char kInstance[] = "x-reprise-instance";

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

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
      events_(catalogue_, log, request_log_),
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

absl::StatusOr<std::unique_ptr<RpcServer>> Daemon::OpenGrpc(const Endpoint& endpoint,
                                                            bool is_admin_port) {
  ASSIGN_OR_RETURN(
      Http2ServerOptions options,
      GrpcPortOptions(options_, cores_.cores(), in_flight_.limits(), repository_, log_));
  options.address = endpoint.address;
  options.port = endpoint.port;
  if (!options_.instance.empty()) options.rpc.head_fields = {{kInstance, options_.instance}};
  options.rpc.add_trailers = [this](const CallHead& head, Http2Fields& trailers) {
    load_reports_.AddTo(head, trailers);
  };
  LoadReportService::Source load;
  if (load_reports_.has_stream()) load = [this] { return load_reports_.Now(); };
  if (request_log_.every()) {
    options.rpc.on_end = [this](const CallHead& head, const absl::Status& status,
                                std::chrono::nanoseconds took) {
      request_log_.OnRpc(head, status, took);
    };
  }
  return RpcServer::Start(
      std::move(options), in_flight_,
      {.repository = &repository_,
       .inference = &inference_,
       .tokens = &tokens_,
       .regions = regions_.get(),
       .state = &state_,
       .readiness = &readiness_,
       .clock = &clock_,
       .log = &log_levels_,
       .tracer = tracer(),
       .version = version_},
      {.engine = &engine_,
       .repository = &repository_,
       .catalogue = &catalogue_,
       .may_administer =
           [this, is_admin_port](const CallHead& head) {
             return door_->Check(Right::kAdmin, head, is_admin_port);
           },
       .version = version_,
       .device = device_text_,
       .streams = static_cast<int>(arenas_.size()),
       .threads_per_stream =
           options_.threads_per_stream > 0 ? options_.threads_per_stream : cores_.cores(),
       .max_cache_bytes = engine_.options().cache_bytes,
       .started = std::chrono::system_clock::now(),
       .grpc_and_http_ports = [this] { return Ports(); }},
      std::move(load), door_->ForRpc(is_admin_port));
}

absl::Status Daemon::OpenHttp() {
  const PageContext pages = {.repository = &repository_,
                             .engine = &engine_,
                             .catalogue = &catalogue_,
                             .state = &state_,
                             .readiness = &readiness_,
                             .grpc_and_http_ports = [this] { return Ports(); },
                             .version = version_,
                             .device = device_text_};
  AddPages(pages, http_router_);
  if (options_.page) {
    AddLivePage({.pages = pages, .texts = &texts_, .started = std::chrono::system_clock::now()},
                http_router_);
  }
  AddRestApi({.repository = &repository_,
              .inference = &inference_,
              .tokens = &tokens_,
              .regions = regions_.get(),
              .state = &state_,
              .engine = &engine_,
              .catalogue = &catalogue_,
              .log = &log_levels_,
              .tracer = tracer(),
              .parsing = &parsing_,
              .version = version_},
             http_router_);
  AddVisionApi({.repository = &repository_, .inference = &inference_, .clock = &clock_}, parsing_,
               http_router_);
  ASSIGN_OR_RETURN(HttpServerOptions options,
                   HttpPortOptions(options_, cores_.cores(), in_flight_, repository_, log_));
  ASSIGN_OR_RETURN(HttpServerOptions of_metrics, MetricsPortOptions(options_, log_));
  options.add_fields = [this](const HttpRequest& request, HttpFields& fields) {
    if (!options_.instance.empty()) fields.emplace_back(kInstance, options_.instance);
    load_reports_.AddTo(request, fields);
  };
  if (request_log_.every()) {
    const auto tell = [this](const AnsweredRequest& request) { request_log_.OnHttp(request); };
    options.on_answer = of_metrics.on_answer = tell;
  }
  RETURN_IF_ERROR(text_threads_.Start(cores_.cores()));
  texts_.SetBackground([this](std::function<void()> work) { text_threads_.Run(std::move(work)); });
  AddTextApi({.texts = {.held = &held_texts_,
                        .repository = &repository_,
                        .models = &texts_,
                        .inference = &inference_,
                        .threads = &text_threads_,
                        .clock = &clock_},
              .tokens = &tokens_,
              .captures = [this](const std::string& model) { return CapturesOf(model); },
              .parsing = &parsing_,
              .version = version_},
             http_router_);
  AddOpenApi(version_, http_router_);
  ASSIGN_OR_RETURN(http_,
                   HttpServer::Start(options_.http, options, door_->ForHttp(http_router_, false)));
  if (options_.admin.port >= 0) {
    ASSIGN_OR_RETURN(
        admin_, HttpServer::Start(options_.admin, options, door_->ForHttp(http_router_, true)));
  }
  AddMetricsPage(pages, metrics_router_);
  ASSIGN_OR_RETURN(metrics_, HttpServer::Start(options_.metrics, of_metrics,
                                               door_->ForHttp(metrics_router_, false)));
  return absl::OkStatus();
}

absl::Status Daemon::OpenPorts() {
  ASSIGN_OR_RETURN(
      door_, FrontDoor::Open(options_, clock_, catalogue_.server(), tracer(),
                             [this](const absl::Status& why) {
                               log_(LogLevel::kError,
                                    absl::StrCat("the keys are as they were: ", why.message()));
                             }));
  ASSIGN_OR_RETURN(rpc_, OpenGrpc(options_.grpc, false));
  if (options_.admin_grpc.port >= 0) {
    const Endpoint endpoint = {.address = options_.admin.address, .port = options_.admin_grpc.port};
    ASSIGN_OR_RETURN(admin_rpc_, OpenGrpc(endpoint, true));
  }
  RETURN_IF_ERROR(OpenHttp());
  ports_are_open_ = true;
  load_reports_.Now();  // rates of the next one are of the time since now
  std::string admin;
  if (admin_ != nullptr) {
    absl::StrAppend(&admin, ", admin ", HostAndPort(options_.admin.address, admin_->port()));
  }
  if (admin_rpc_ != nullptr) {
    absl::StrAppend(&admin, ", admin grpc ",
                    HostAndPort(options_.admin.address, admin_rpc_->port()));
  }
  log_(LogLevel::kInfo,
       absl::StrCat("listening: grpc ", HostAndPort(options_.grpc.address, rpc_->port()), ", http ",
                    HostAndPort(options_.http.address, http_->port()), ", metrics ",
                    HostAndPort(options_.metrics.address, metrics_->port()), admin));
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

void Daemon::Leave() {
  // Before the start is over no load balancer sends requests.
  const bool was_serving = state_.state() != ServerState::State::kStarting;
  state_.SetLeaving();
  catalogue_.server().draining->Set(1);
  readiness_.Now();
  http_->Drain();
  if (options_.drain_grace_secs == 0 || !was_serving) return;
  log_(LogLevel::kInfo, absl::StrCat("requests are served for ", options_.drain_grace_secs,
                                     " s more, so that clients see that the server leaves"));
  std::this_thread::sleep_for(std::chrono::seconds(options_.drain_grace_secs));
  // Clients that have not looked are sent elsewhere: connections end, and none can be made.
  // Requests on the remaining ones are still served.
  const auto end = std::chrono::steady_clock::now() + kLongestLeaving;
  for (HttpServer* server : {http_.get(), admin_.get()}) {
    if (server != nullptr) server->Leave();
  }
  rpc_->Leave(end);
  if (admin_rpc_ != nullptr) admin_rpc_->Leave(end);
  http_->WaitUntilSent(kQuietTime, end - std::chrono::steady_clock::now());
}

std::chrono::seconds Daemon::ExitTime(const Options& options) {
  if (options.drain_grace_secs == 0) return TimeAfterGrace(options);
  return std::chrono::seconds(options.drain_grace_secs) +
         std::chrono::ceil<std::chrono::seconds>(kLongestLeaving) + TimeAfterGrace(options);
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

void Daemon::Drain(std::function<void(const char* step)> on_step) {
  on_step_ = std::move(on_step);
  on_step_("requests");
  Leave();
  state_.SetDraining();
  scheduler_.StopAccepting(Stopping());
  const std::chrono::nanoseconds patience = DrainTime(options_);
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + patience, all_end = begin + TimeAfterGrace(options_);
  if (!scheduler_.WaitUntilIdle(patience)) {
    log_(LogLevel::kWarning,
         FormatText("requests are left after %.1f s; those that wait are refused, and those that "
                    "run are stopped",
                    std::chrono::duration<double>(patience).count()));
    scheduler_.Shutdown(Stopping());
    scheduler_.StopRuns(Stopping());
  }
  sequences_.Close(Stopping());
  FinishGenerations(end);
  // Clients that wait for a model are told.
  on_step_("models that are loaded");
  repository_.Stop();
  on_step_("clients that read their answers");
  // The deadline of Shutdown does not do here: Shutdown waits that long for calls that never end,
  // such as a watch of the health service.
  // Those whose answers were ended just now are told why.
  const auto told = std::max<std::chrono::steady_clock::time_point>(
      end, std::chrono::steady_clock::now() + UpTo(kLongestRefusing, all_end));
  const auto left = [told] { return told - std::chrono::steady_clock::now(); };
  if (!rpc_->WaitUntilSent(kQuietTime.zero(), left()) ||
      !http_->WaitUntilSent(kQuietTime.zero(), left())) {
    log_(LogLevel::kWarning,
         FormatText("clients have not read their answers after %.1f s; they are cut off",
                    std::chrono::duration<double>(patience).count()));
  } else {
    rpc_->WaitUntilSent(kQuietTime, UpTo(kLongestRefusing, all_end));
    http_->WaitUntilSent(kQuietTime, UpTo(kLongestRefusing, all_end));
  }
  const auto cut = std::chrono::steady_clock::now() + UpTo(kFlushTime, all_end);
  rpc_->Shutdown(cut);
  if (admin_rpc_ != nullptr) admin_rpc_->Shutdown(cut);
  if (traces_ != nullptr) traces_->Finish(UpTo(kFlushTime, all_end));
  on_step_("the recipe store");
  store_.Finish();
  engine_.SaveUsage(UsageKeeper::When::kNow);
  metrics_file_->Finish();
}

void Daemon::FinishGenerations(std::chrono::steady_clock::time_point end) {
  constexpr std::chrono::milliseconds kLook(5);
  std::vector<std::weak_ptr<GenerationLoop>> all;
  {
    MutexLock lock(generations_mutex_);
    all = generations_;
  }
  for (const std::weak_ptr<GenerationLoop>& one : all) {
    const std::shared_ptr<GenerationLoop> generation = one.lock();
    if (generation == nullptr) continue;
    while (!generation->idle() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kLook);
    }
    generation->Finish();
  }
}

Daemon::~Daemon() {
  scheduler_.Shutdown(Stopping());
  sequences_.Close(Stopping());
  sequences_.Stop();
  // They tell tokens to the ports.
  FinishGenerations(std::chrono::steady_clock::now());
  repository_.Stop();  // Its threads report changes to the ports.
  on_step_("streams that run");
  dispatcher_.reset();
  text_threads_.Stop();
  on_step_("captures");
  // The results would not be used, and the captures' callbacks end in the scheduler.
  captures_.Stop();
  metrics_file_->Finish();
  on_step_("the recipe store");
  store_.Finish();
  on_step_("connections");
  metrics_.reset();
  admin_.reset();
  http_.reset();
  admin_rpc_.reset();
  rpc_.reset();
}

}  // namespace reprise
