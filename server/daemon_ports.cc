// The ports of the daemon: each service that listens, and the parts of the daemon it is handed.
#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/digest128.h"
#include "runtime/base/status_macros.h"
#include "server/daemon.h"
#include "server/openapi/openapi_page.h"
#include "server/page/live_page.h"
#include "server/port_options.h"
#include "server/rest/rest_api.h"
#include "server/text_api/text_api.h"
#include "server/vision/vision_api.h"

namespace reprise {
namespace {

// The header of answers that says which of several servers has answered.
constexpr char kInstance[] = "x-reprise-instance";

// Returns a digest of the program's file: ranks compute the same with the same program alone.
absl::StatusOr<std::string> ProgramDigest() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Digest128 digest;
  std::vector<char> bytes(size_t{1} << 20);
  while (file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || file.gcount() > 0) {
    digest.Add({bytes.data(), static_cast<size_t>(file.gcount())});
  }
  if (!file.eof()) return absl::UnavailableError("the program's own file cannot be read");
  return digest.Hex();
}

}  // namespace

absl::Status Daemon::MeetRanks() {
  if (options_.ranks == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(RankAddress address, RankAddress::Parse(options_.rank_address));
  ASSIGN_OR_RETURN(std::string program, ProgramDigest());
  ASSIGN_OR_RETURN(ranks_, RankHub::Open({.rank = options_.rank,
                                          .ranks = options_.ranks,
                                          .address = std::move(address),
                                          .binary = std::move(program),
                                          .isa = std::string(IsaName(UsedIsa(options_))),
                                          .parallelism = options_.rank_parallelism,
                                          .log = [log = log_](const std::string& line) {
                                            log(LogLevel::kInfo, line);
                                          }}));
  log_(LogLevel::kInfo, absl::StrCat("rank ", options_.rank, " of ", options_.ranks, " meets at ",
                                     ranks_->address().Text()));
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
  std::string prefixes;
  if (prefixes_ != nullptr) {
    const Endpoint& endpoint = options_.prefix_events;
    RETURN_IF_ERROR(prefixes_->Start(endpoint.address, endpoint.port));
    prefixes = absl::StrCat(", prefix events ", HostAndPort(endpoint.address, prefixes_->port()));
  }
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
                    HostAndPort(options_.metrics.address, metrics_->port()), admin, prefixes));
  return absl::OkStatus();
}

}  // namespace reprise
