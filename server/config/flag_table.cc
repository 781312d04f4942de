#include "server/config/flag_table.h"

#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "command_line/completion.h"
#include "runtime/base/cpu/compiled_tiers.h"
#include "runtime/device/collective.h"
#include "server/config/flag_checks.h"

namespace reprise {
namespace {

// The functions of the rows: each adds a flag whose value is the member that the path of members
// leads to.

// Adds a flag without a value.
template <auto... kMembers>
CLI::Option* AddSwitch(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return app.add_flag(flag.name, (target.*....*kMembers), flag.meaning);
}

template <auto... kMembers>
CLI::Option* AddValue(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return app.add_option(flag.name, (target.*....*kMembers), flag.meaning);
}

// Adds a flag that may be given several times.
template <auto... kMembers>
CLI::Option* AddValues(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddValue<kMembers...>(app, flag, target)->allow_extra_args(false);
}

template <int kLeast, int kMost, auto... kMembers>
CLI::Option* AddWithin(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddValue<kMembers...>(app, flag, target)->check(CLI::Range(kLeast, kMost));
}

template <auto... kMembers>
CLI::Option* AddPort(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddWithin<0, 65535, kMembers..., &Endpoint::port>(app, flag, target);
}

template <int kLeast, auto... kMembers>
CLI::Option* AddCount(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddWithin<kLeast, std::numeric_limits<int>::max(), kMembers...>(app, flag, target);
}

template <auto kMember>
CLI::Option* AddShare(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddValue<kMember>(app, flag, target)->check(CLI::Range(0.0, 1.0));
}

// Adds a text that `kTrouble` finds no fault with.
template <std::string (*kTrouble)(std::string& text), auto kMember>
CLI::Option* AddChecked(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddValue<kMember>(app, flag, target)->check(CLI::Validator(kTrouble, ""));
}

template <int64_t kLeast, auto... kMembers>
CLI::Option* AddMegabytes(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddValue<kMembers...>(app, flag, target)->check(CLI::Range(kLeast, int64_t{1} << 30));
}

// Adds a choice among names, each with its value.
template <typename T>
CLI::Option* AddChoice(CLI::App& app, const Flag& flag, T& target,
                       std::vector<std::pair<std::string, T>> choices) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const auto& [name, value] : choices) names.push_back(name);
  auto assign = [&target, choices](const std::string& text) {
    for (const auto& [name, value] : choices) {
      if (name == text) target = value;
    }
  };
  return app.add_option_function<std::string>(flag.name, assign, flag.meaning)
      ->check(CLI::IsMember(names));
}

template <auto... kMembers>
CLI::Option* AddTrueOrFalse(CLI::App& app, const Flag& flag, FlagTarget& target) {
  return AddChoice<bool>(app, flag, (target.*....*kMembers), {{"true", true}, {"false", false}});
}

// Adds a text that the function Parse of the member's type reads.
template <auto kMember>
CLI::Option* AddParsed(CLI::App& app, const Flag& flag, FlagTarget& target) {
  auto& value = target.*kMember;
  using T = std::remove_reference_t<decltype(value)>;
  return app
      .add_option_function<std::string>(
          flag.name, [&value](const std::string& text) { value = *T::Parse(text); }, flag.meaning)
      ->check([](const std::string& text) {
        const auto parsed = T::Parse(text);
        return parsed.ok() ? "" : std::string(parsed.status().message());
      });
}

// THE table of flags.
constexpr Flag kFlags[] = {
    {"--model-repository", "DIR", "",
     "Folder of models, <model>/<version>/model.onnx or <model>/onnx/model.onnx",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddValues<&Options::model_repositories>(app, flag, target)
           ->check(CLI::ExistingDirectory);
     }},
    {"--model", "NAME=PATH", "",
     "One model: its folder or file, or where it is fetched from: hf://ORG/REPO[@REVISION][:FILE], "
     "s3://BUCKET/KEY, gs://BUCKET/KEY, https://HOST/FILE (a model, or an archive)",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChecked<TroubleOfModel, &FlagTarget::models>(app, flag, target)
           ->allow_extra_args(false);
     }},
    {"--variant", "VARIANT", "",
     "File of the folders that --model names: int8 takes model_int8.onnx",
     AddValue<&Options::variant>},
    {"--model-cache", "DIR", "",
     "Folder that keeps fetched models; several servers may share it. Default: "
     "~/.cache/reprise/models",
     AddValue<&Options::model_cache>},
    {"--max-download-mb", "MB", "20480",
     "Size of a fetched model, in MiB, and of the files that its archive unpacks to",
     AddMegabytes<1, &Options::max_download_mb>},
    {"--model-control-mode", "MODE", "none",
     "none: load every model at start. explicit: load and unload as clients ask. poll: load new "
     "and changed models, unload removed ones",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChoice<ModelControl>(app, flag, target.model_control,
                                      {{"none", ModelControl::kNone},
                                       {"explicit", ModelControl::kExplicit},
                                       {"poll", ModelControl::kPoll}});
     }},
    {"--load-model", "NAME", "",
     "Model to load at start with --model-control-mode explicit; * is all",
     AddValues<&Options::load_models>},
    {"--repository-poll-secs", "SECONDS", "15",
     "How often --model-control-mode poll looks at the folders",
     AddCount<1, &Options::repository_poll_secs>},
    {"--config-strictness", "strict|warn", "strict",
     "Hints in a config.pbtxt that change no answer here (optimization, threads, GPUs). strict: "
     "refuse the load; warn: ignore each with a line in the log",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChoice<ConfigStrictness>(
           app, flag, target.config_strictness,
           {{"strict", ConfigStrictness::kStrict}, {"warn", ConfigStrictness::kWarn}});
     }},
    {"--strict-readiness", "true|false", "true",
     "true: ready while every requested model can be served. false: ready once every model of the "
     "start is loaded or refused",
     AddTrueOrFalse<&Options::strict_readiness>},
    {"--exit-on-error", "true|false", "false",
     "true: a model of the start that cannot be loaded ends the server, with exit code 1",
     AddTrueOrFalse<&Options::exit_on_error>},
    {"--fail-on-compile", "true|false", "false",
     "true: for tests: serve as usual, and end with exit code 3 if anything was compiled for a "
     "request once the server was ready; the log names each",
     AddTrueOrFalse<&Options::fail_on_compile>},
    {"--allow-empty", "", "",
     "Report ready although no model can be served; --model-control-mode explicit does so anyway",
     AddSwitch<&Options::allow_empty>},
    {"--grpc-address", "ADDRESS", "127.0.0.1", "Address the gRPC service listens on",
     AddValue<&Options::grpc, &Endpoint::address>},
    {"--grpc-port", "PORT", "8001", "Port of the gRPC service; 0 takes a free one",
     AddPort<&Options::grpc>},
    {"--http-address", "ADDRESS", "127.0.0.1",
     "Address of inference over HTTP, health, the live page and metrics",
     AddValue<&Options::http, &Endpoint::address>},
    {"--http-port", "PORT", "8000",
     "Port of inference over HTTP, health, the live page and metrics; 0 takes a free one",
     AddPort<&Options::http>},
    {"--metrics-address", "ADDRESS", "127.0.0.1", "Address that serves /metrics",
     AddValue<&Options::metrics, &Endpoint::address>},
    {"--metrics-port", "PORT", "8002", "Port that serves /metrics; 0 takes a free one",
     AddPort<&Options::metrics>},
    {"--api-key-file", "FILE", "",
     "Keys, one NAME KEY RIGHTS [LIMITS] on each line; clients send one as authorization: Bearer "
     "KEY or x-api-key: KEY. Read again when it changes",
     AddValue<&Options::api_key_file>},
    {"--allow-admin", "", "",
     "Without --api-key-file: accept calls that change the server from other machines as well",
     AddSwitch<&Options::allow_admin>},
    {"--admin-address", "ADDRESS", "127.0.0.1", "Address of the admin ports",
     AddValue<&Options::admin, &Endpoint::address>},
    {"--admin-port", "PORT", "",
     "HTTP port for calls that change the server, which the other ports then refuse; 0 takes a "
     "free one",
     AddPort<&Options::admin>},
    {"--admin-grpc-port", "PORT", "",
     "gRPC port for calls that change the server, which the other ports then refuse; 0 takes a "
     "free one",
     AddPort<&Options::admin_grpc>},
    {"--page", "on|off", "on",
     "The live page at / of the HTTP port, which shows the server and tries its models; off: there "
     "is none",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChoice<bool>(app, flag, target.page, {{"on", true}, {"off", false}});
     }},
    {"--cors-allow-origin", "ORIGIN", "",
     "Origin of web pages that may call the HTTP port (CORS); * allows any",
     AddValues<&Options::cors_origins>},
    {"--grpc-use-ssl", "", "", "Accept only TLS on the gRPC port",
     AddSwitch<&Options::grpc_tls, &TlsOptions::use>},
    {"--grpc-use-ssl-mutual", "", "",
     "Require a certificate signed by --grpc-root-cert from gRPC clients (mutual TLS)",
     AddSwitch<&Options::grpc_tls, &TlsOptions::mutual>},
    {"--grpc-server-cert", "FILE", "",
     "Certificate of the server for gRPC, PEM; read again when it changes",
     AddValue<&Options::grpc_tls, &TlsOptions::certificate>},
    {"--grpc-server-key", "FILE", "", "Private key of the server's certificate, PEM",
     AddValue<&Options::grpc_tls, &TlsOptions::key>},
    {"--grpc-root-cert", "FILE", "", "Authorities that sign the certificates of gRPC clients, PEM",
     AddValue<&Options::grpc_tls, &TlsOptions::root>},
    {"--http-use-ssl", "", "", "Accept only TLS on the HTTP port",
     AddSwitch<&Options::http_tls, &TlsOptions::use>},
    {"--http-use-ssl-mutual", "", "",
     "Require a certificate signed by --http-root-cert from HTTP clients (mutual TLS)",
     AddSwitch<&Options::http_tls, &TlsOptions::mutual>},
    {"--http-server-cert", "FILE", "",
     "Certificate of the server for HTTP, PEM; read again when it changes",
     AddValue<&Options::http_tls, &TlsOptions::certificate>},
    {"--http-server-key", "FILE", "", "Private key of the server's certificate, PEM",
     AddValue<&Options::http_tls, &TlsOptions::key>},
    {"--http-root-cert", "FILE", "", "Authorities that sign the certificates of HTTP clients, PEM",
     AddValue<&Options::http_tls, &TlsOptions::root>},
    {"--metrics-use-ssl", "", "", "Accept only TLS on the metrics port",
     AddSwitch<&Options::metrics_tls, &TlsOptions::use>},
    {"--metrics-use-ssl-mutual", "", "",
     "Require a certificate signed by --metrics-root-cert from scrapers (mutual TLS)",
     AddSwitch<&Options::metrics_tls, &TlsOptions::mutual>},
    {"--metrics-server-cert", "FILE", "",
     "Certificate of the server for the metrics port, PEM; read again when it changes",
     AddValue<&Options::metrics_tls, &TlsOptions::certificate>},
    {"--metrics-server-key", "FILE", "", "Private key of the server's certificate, PEM",
     AddValue<&Options::metrics_tls, &TlsOptions::key>},
    {"--metrics-root-cert", "FILE", "", "Authorities that sign the certificates of scrapers, PEM",
     AddValue<&Options::metrics_tls, &TlsOptions::root>},
    {"--grpc-max-connections", "N", "0",
     "Most gRPC connections at a time; 0: a third of the process's file descriptors",
     AddCount<0, &Options::grpc_connections, &GrpcConnectionOptions::max_connections>},
    {"--grpc-max-streams", "N", "1024", "Most calls of one gRPC connection at a time",
     AddCount<1, &Options::grpc_connections, &GrpcConnectionOptions::max_streams>},
    {"--grpc-max-connection-age-secs", "SECONDS", "0",
     "Age at which a gRPC connection is asked to close, varied by up to a tenth; 0: never",
     AddCount<0, &Options::grpc_connections, &GrpcConnectionOptions::max_age_secs>},
    {"--grpc-max-connection-age-grace-secs", "SECONDS", "0",
     "Time that the calls of such a connection may still take before they are cut off; 0: no limit",
     AddCount<0, &Options::grpc_connections, &GrpcConnectionOptions::max_age_grace_secs>},
    {"--grpc-max-connection-idle-secs", "SECONDS", "3600",
     "Time after which a gRPC connection without a call is closed; 0: never",
     AddCount<0, &Options::grpc_connections, &GrpcConnectionOptions::max_idle_secs>},
    {"--grpc-keepalive-time", "MS", "7200000",
     "Time without traffic after which a gRPC client is pinged; 0: never",
     AddCount<0, &Options::grpc_connections, &GrpcConnectionOptions::keepalive_time_ms>},
    {"--grpc-keepalive-timeout", "MS", "20000",
     "Time within which a gRPC client must answer the ping",
     AddCount<1, &Options::grpc_connections, &GrpcConnectionOptions::keepalive_timeout_ms>},
    {"--grpc-keepalive-permit-without-calls", "", "", "Ping gRPC clients without a call as well",
     AddSwitch<&Options::grpc_connections, &GrpcConnectionOptions::keepalive_permit_without_calls>},
    {"--grpc-http2-min-recv-ping-interval-without-data", "MS", "300000",
     "Least time between two pings of a gRPC client that has no call",
     AddCount<0, &Options::grpc_connections, &GrpcConnectionOptions::min_ping_interval_ms>},
    {"--grpc-http2-max-ping-strikes", "N", "2",
     "Earlier pings after which the connection is closed",
     AddCount<0, &Options::grpc_connections, &GrpcConnectionOptions::max_ping_strikes>},
    {"--http-max-connections", "N", "0",
     "Most HTTP connections at a time; 0: a third of the process's file descriptors",
     AddCount<0, &Options::http_max_connections>},
    {"--write-timeout-secs", "SECONDS", "30",
     "Time after which a client that reads nothing of an answer is cut off",
     AddCount<1, &Options::write_timeout_secs>},
    {"--in-flight-memory-mb", "MB", "0",
     "Memory for requests and answers in flight, in MiB; requests above it are refused at once. 0: "
     "half of the memory",
     AddMegabytes<0, &Options::in_flight_memory_mb>},
    {"--system-shared-memory", "", "",
     "Let clients on this machine pass tensors in POSIX shared memory. Any client can then read "
     "and write every shared memory object that the server can",
     AddSwitch<&Options::system_shared_memory>},
    {"--connection-memory-mb", "MB", "0",
     "Part of --in-flight-memory-mb that one connection may take, in MiB; 0: half",
     AddMegabytes<0, &Options::connection_memory_mb>},
    {"--recipe-cache-memory-mb", "MB", "1024",
     "Memory for recipes, in MiB; above it the least recently used are evicted",
     AddMegabytes<1, &Options::recipe_cache_memory_mb>},
    {"--eager-cache-memory-mb", "MB", "64",
     "Memory for kernels that eager runs prepare, in MiB, in addition to the memory for recipes",
     AddMegabytes<0, &Options::eager_cache_memory_mb>},
    {"--arena-memory-mb", "MB", "0",
     "Memory for the arenas of all streams, in MiB. 0: 16 GiB for each stream, at most three "
     "quarters of the memory in all",
     AddMegabytes<0, &Options::arena_memory_mb>},
    {"--data-memory-mb", "MB", "0",
     "Memory whose size the values of requests decide, and not their shapes, of all requests "
     "together, in MiB; 0: an eighth of the memory",
     AddMegabytes<0, &Options::data_memory_mb>},
    {"--parameter-memory-mb", "MB", "0",
     "Memory for the parameters of all models, as stored and as packed for kernels, in MiB; 0: no "
     "limit",
     AddMegabytes<0, &Options::parameter_memory_mb>},
    {"--recipe-cache", "DIR", "",
     "Folder that keeps recipes, kernel timings and certificates over a restart; several servers "
     "may share it",
     AddValue<&Options::recipe_cache>},
    {"--recipe-cache-disk-mb", "MB", "1024",
     "Size of the folder --recipe-cache, in MiB; above it the files of the least value are deleted",
     AddMegabytes<1, &Options::recipe_cache_disk_mb>},
    {"--store-key", "FILE", "",
     "File with a secret of 16 bytes or more: records of --recipe-cache get a MAC by it, and "
     "others are not used",
     AddValue<&Options::store_key>},
    {"--frozen", "", "",
     "Never capture for a request: refuse a request that no ready recipe can serve",
     AddSwitch<&Options::frozen>},
    {"--eager", "", "",
     "Never capture: run every model op by op, as `reprise.capture: off` does for one",
     AddSwitch<&Options::eager>},
    {"--op-library", "FILE.so", "",
     "Shared library with ops that models may use (the C interface of reprise_op.h). Its code is "
     "trusted",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddValues<&Options::op_libraries>(app, flag, target)->check(CLI::ExistingFile);
     }},
    {"--device", "NAME", "cpu",
     "cpu, or reference: plain loops that define the right answers, and are slow",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChoice<DeviceKind>(
           app, flag, target.device,
           {{"cpu", DeviceKind::kCpu}, {"reference", DeviceKind::kReference}});
     }},
    {"--streams", "N", "0", "Replays that may run at the same time; 0: one for each CPU",
     AddWithin<0, 1024, &Options::streams>},
    {"--threads-per-stream", "N", "0", "Threads of one replay; 0: chosen from CPUs and load",
     AddWithin<0, 1024, &Options::threads_per_stream>},
    {"--max-isa", "ISA", "", "Highest instruction set to use, the libraries included",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       std::vector<std::pair<std::string, std::optional<Isa>>> choices;
       choices.reserve(std::size(kIsas));
       for (const NamedIsa& named : kIsas) {
         choices.emplace_back(named.name, ParseIsa(named.name));
       }
       return AddChoice(app, flag, target.max_isa, std::move(choices))
           ->check([](const std::string& name) { return WhyNotIsa(name); });
     }},
    {"--gemm-provider", "NAME", "auto",
     "Library that multiplies matrices: own, openblas, or auto: own kernels, and OpenBLAS where it "
     "was timed to be clearly faster",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       std::vector<std::pair<std::string, GemmProvider>> choices;
       for (size_t i = 0; i < std::size(kGemmProviderNames); ++i) {
         choices.emplace_back(kGemmProviderNames[i], static_cast<GemmProvider>(i));
       }
       return AddChoice(app, flag, target.gemm_provider, std::move(choices));
     }},
    {"--load-reports", "off|request|always|oob", "request",
     "Load reports (ORCA) for balancers. request: with answers to requests that ask by "
     "endpoint-load-metrics-format; always: with every answer; oob: as a stream alone, by "
     "OpenRcaService, which request and always have as well",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChoice<LoadReportMode>(app, flag, target.load_reports,
                                        {{"off", LoadReportMode::kOff},
                                         {"request", LoadReportMode::kRequest},
                                         {"always", LoadReportMode::kAlways},
                                         {"oob", LoadReportMode::kOob}});
     }},
    {"--instance", "NAME", "",
     "Name of this server, in the header x-reprise-instance of every answer; none: no header",
     AddChecked<TroubleOfInstance, &Options::instance>},
    {"--prefix-events", "ADDRESS:PORT", "",
     "Port that tells routers the pages of prompts that this server holds, by content (ZeroMQ, as "
     "vLLM's KV cache events). Its clients read the tokens of prompts; none: no port",
     AddParsed<&Options::prefix_events>},
    {"--ranks", "N", "1",
     "Servers that compute each model that makes tokens together, a part of it each: see "
     "--rank-parallelism",
     AddWithin<1, Collective::kMostRanks, &Options::ranks>},
    {"--rank", "I", "0", "Number of this server among them. Rank 0 takes the requests",
     AddWithin<0, Collective::kMostRanks - 1, &Options::rank>},
    {"--rank-parallelism", "tensor|pipeline", "tensor",
     "The part of each. tensor: of the weights and heads of every layer, so that an answer takes "
     "less time; pipeline: some of the layers, for weights that do not fit one server",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChoice<Parallelism>(
           app, flag, target.rank_parallelism,
           {{"tensor", Parallelism::kTensor}, {"pipeline", Parallelism::kPipeline}});
     }},
    {"--rank-address", "unix:PATH|HOST:PORT", "",
     "Where they meet: rank 0 listens there, and the others connect. unix:PATH is for servers of "
     "one host, and the fastest",
     AddChecked<TroubleOfRankAddress, &Options::rank_address>},
    {"--drain-grace-secs", "SECONDS", "2",
     "Time after SIGTERM for which requests are still served, so that load balancers see that the "
     "server is not ready; 0: refuse them at once",
     AddCount<0, &Options::drain_grace_secs>},
    {"--exit-timeout-secs", "SECONDS", "30",
     "Time within which the process ends after SIGTERM, accepted requests included",
     AddCount<0, &Options::exit_timeout_secs>},
    {"--max-queue-time", "SECONDS", "auto",
     "Load shedding: refuse a request at once if the requests queued ahead of it will take longer "
     "than this. 0: no limit; auto: a second, or the time of 20 replays of the largest bucket if "
     "that is longer",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       const auto read = [&target](const std::string& text) {
         double seconds = 0;
         if (text == "auto") {
           target.max_queue_seconds.reset();
         } else if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= 1e6) {
           target.max_queue_seconds = seconds;
         } else {
           throw CLI::ValidationError("--max-queue-time",
                                      "SECONDS is " + text + ", it must be auto or a number");
         }
       };
       return app.add_option_function<std::string>(flag.name, read, flag.meaning);
     }},
    {"--log-format", "FORMAT", "text", "text, or json: one object on each line",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddChoice<LogFormat>(app, flag, target.log_format,
                                   {{"text", LogFormat::kText}, {"json", LogFormat::kJson}});
     }},
    {"--log-level", "LEVELS", "info",
     "debug, info, warning or error; MODULE=debug adds the debug lines of one module: "
     "info,capture=debug,store=debug. Without the flag, the environment variable REPRISE_LOG "
     "counts",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddParsed<&Options::log_levels>(app, flag, target)->envname("REPRISE_LOG");
     }},
    {"--trace-file", "FILE", "",
     "Write captures, loads and replays as a trace for Chrome and Perfetto",
     AddValue<&Options::trace_file>},
    {"--audit-share", "SHARE", "0.001",
     "Share of padded answers that are computed again, exact and alone, in the background, within "
     "1 % of the cores' time. A model with an answer that differs runs exact until it is loaded "
     "again; 0: none",
     AddShare<&Options::audit_share>},
    {"--audit-dir", "DIR", "",
     "Write the requests whose audited answers differ; they hold a client's data. None: they are "
     "written nowhere",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddValue<&Options::audit_dir>(app, flag, target)->check(CLI::ExistingDirectory);
     }},
    {"--dump-graphs", "DIR", "",
     "Write the graphs of each capture as text, one file for each capture",
     AddValue<&Options::dump_graphs>},
    {"--metrics-file", "FILE", "", "Write all metrics, and every capture, as JSON",
     AddValue<&Options::metrics_file>},
    {"--metrics-file-on", "TRIGGERS", "exit",
     "Events on which --metrics-file is written, separated by commas: exit, capture, interval:10s",
     AddParsed<&Options::metrics_triggers>},
    {"--metrics-detail", "", "",
     "Show every series on /metrics: by bucket and by reason, and those that stay 0",
     AddSwitch<&Options::metrics_detail>},
    {"--access-log", "", "",
     "Log one line for each request: its key, model, sizes, times and outcome",
     AddSwitch<&Options::access_log>},
    {"--trace-endpoint", "URL", "",
     "Collector that spans of requests are sent to, by OTLP over HTTP: http://HOST:4318",
     AddChecked<TroubleOfEndpoint, &Options::trace_endpoint>},
    {"--trace-sample", "SHARE", "1",
     "Share of the requests that are traced, from 0 to 1, where the caller does not decide",
     AddShare<&Options::trace_sample>},
    {"--config", "FILE", "",
     "YAML with further flags, `http-port: 9000`; a variable REPRISED_HTTP_PORT counts before it, "
     "the command line before both",
     AddValue<&FlagTarget::config>},
    {"--print-config", "", "",
     "Print all flags as YAML, with where each value comes from, and exit",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddSwitch<&FlagTarget::print_config>(app, flag, target)->configurable(false);
     }},
    {"--man", "", "", "Print the manual page, in the language of man, and exit",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddSwitch<&FlagTarget::manual>(app, flag, target)->configurable(false);
     }},
    {"--completion", "SHELL", "", "Print the completion script of bash, zsh or fish, and exit",
     [](CLI::App& app, const Flag& flag, FlagTarget& target) {
       return AddValue<&FlagTarget::completion>(app, flag, target)
           ->check(CLI::IsMember(std::vector<std::string>(std::begin(command_line::kShells),
                                                          std::end(command_line::kShells))))
           ->configurable(false);
     }},
};

// The headings of --help, each with the first flag below it.
constexpr std::pair<const char*, const char*> kGroups[] = {
    {"--model-repository", "Models"},
    {"--grpc-address", "Ports"},
    {"--api-key-file", "Access"},
    {"--grpc-use-ssl", "TLS"},
    {"--grpc-max-connections", "Connections"},
    {"--in-flight-memory-mb", "Memory"},
    {"--recipe-cache", "Recipes and kernels"},
    {"--drain-grace-secs", "Load and shutdown"},
    {"--log-format", "Logs and files"},
    {"--config", "The program"},
};

}  // namespace

absl::Span<const Flag> FlagRows() { return kFlags; }

const char* GroupFrom(const char* flag) {
  for (const auto& [first, title] : kGroups) {
    if (absl::string_view(flag) == first) return title;
  }
  return nullptr;
}

}  // namespace reprise
