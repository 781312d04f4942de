#include "server/config/flags.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/nearest_name.h"

namespace reprise {
namespace {

struct Flag {
  const char* name;
  const char* value;
  const char* default_value;
  const char* meaning;
  CLI::Option* (*add)(CLI::App& app, const Flag& flag, Options& options);
};

CLI::Option* AddPort(CLI::App& app, const Flag& flag, int& port) {
  return app.add_option(flag.name, port, flag.meaning)->check(CLI::Range(0, 65535));
}

// A choice among names, each with its value.
template <typename T>
CLI::Option* AddChoice(CLI::App& app, const Flag& flag, T& target,
                       std::vector<std::pair<std::string, T>> choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  auto assign = [&target, choices](const std::string& text) {
    for (const auto& [name, value] : choices) {
      if (name == text) target = value;
    }
  };
  return app.add_option_function<std::string>(flag.name, assign, flag.meaning)
      ->check(CLI::IsMember(names));
}

// A text that T::Parse reads.
template <typename T>
CLI::Option* AddParsed(CLI::App& app, const Flag& flag, T& target) {
  return app
      .add_option_function<std::string>(
          flag.name, [&target](const std::string& text) { target = *T::Parse(text); }, flag.meaning)
      ->check([](const std::string& text) {
        const auto parsed = T::Parse(text);
        return parsed.ok() ? "" : std::string(parsed.status().message());
      });
}

// The rest of the command line, which is folded into the options once it is read.
struct Target : Options {
  std::vector<std::string> models;
  std::string variant;
};

// Says why `text` is no NAME=PATH of a model; the empty text where it is one.
std::string TroubleOfModel(std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return absl::StrCat(text, " is no NAME=PATH");
  if (text.substr(0, equals).find('/') != std::string::npos) {
    return absl::StrCat(text, ": a name has no '/'");
  }
  std::error_code error;
  if (std::filesystem::exists(text.substr(equals + 1), error)) return "";
  return absl::StrCat("Path does not exist: ", text.substr(equals + 1));
}

// THE table of flags.
constexpr Flag kFlags[] = {
    {"--model-repository", "DIR", "",
     "Folder of models, <model>/<version>/model.onnx or <model>/onnx/model.onnx; may be given more "
     "than once",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.model_repositories, flag.meaning)
           ->allow_extra_args(false)
           ->check(CLI::ExistingDirectory);
     }},
    {"--model", "NAME=PATH", "",
     "A model by itself: its folder, or its file; may be given more than once",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, static_cast<Target&>(options).models, flag.meaning)
           ->allow_extra_args(false)
           ->check(CLI::Validator(TroubleOfModel, "NAME=PATH"));
     }},
    {"--variant", "VARIANT", "",
     "Which file of a folder that --model names is the model: int8 takes model_int8.onnx",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, static_cast<Target&>(options).variant, flag.meaning);
     }},
    {"--model-control-mode", "MODE", "none",
     "none: load every model at start. explicit: load and unload as clients ask. poll: load what "
     "is new or changed, unload what is gone",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<ModelControl>(app, flag, options.model_control,
                                      {{"none", ModelControl::kNone},
                                       {"explicit", ModelControl::kExplicit},
                                       {"poll", ModelControl::kPoll}});
     }},
    {"--load-model", "NAME", "",
     "Model to load at start with --model-control-mode explicit; may be given more than once; * is "
     "all",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.load_models, flag.meaning)->allow_extra_args(false);
     }},
    {"--repository-poll-secs", "SECONDS", "15",
     "How often --model-control-mode poll looks at the folders",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.repository_poll_secs, flag.meaning)
           ->check(CLI::Range(1, std::numeric_limits<int>::max()));
     }},
    {"--config-strictness", "strict|warn", "strict",
     "Hints in a config.pbtxt that change no answer here (optimization, threads, GPUs): strict: "
     "the "
     "load is refused, warn: they are left out with a line each",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<ConfigStrictness>(
           app, flag, options.config_strictness,
           {{"strict", ConfigStrictness::kStrict}, {"warn", ConfigStrictness::kWarn}});
     }},
    {"--strict-readiness", "true|false", "true",
     "true: ready while each model that was asked for can be served. false: ready once each model "
     "of the start is loaded or refused",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<bool>(app, flag, options.strict_readiness,
                              {{"true", true}, {"false", false}});
     }},
    {"--exit-on-error", "true|false", "false",
     "true: a model of the start that cannot be loaded ends the server, with exit code 1",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<bool>(app, flag, options.exit_on_error, {{"true", true}, {"false", false}});
     }},
    {"--allow-empty", "", "",
     "A repository without a model that can be served is ready as well; with "
     "--model-control-mode explicit it always is",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.allow_empty, flag.meaning);
     }},
    {"--grpc-address", "ADDRESS", "127.0.0.1", "Address the gRPC service listens on",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc.address, flag.meaning);
     }},
    {"--grpc-port", "PORT", "8001", "Port of the gRPC service; 0 takes a free one",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddPort(app, flag, options.grpc.port);
     }},
    {"--http-address", "ADDRESS", "127.0.0.1",
     "Address of inference over HTTP, health, status page and metrics",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http.address, flag.meaning);
     }},
    {"--http-port", "PORT", "8000",
     "Port of inference over HTTP, health, status page and metrics; 0 takes a free one",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddPort(app, flag, options.http.port);
     }},
    {"--metrics-address", "ADDRESS", "127.0.0.1", "Address that serves /metrics",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.metrics.address, flag.meaning);
     }},
    {"--metrics-port", "PORT", "8002", "Port that serves /metrics; 0 takes a free one",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddPort(app, flag, options.metrics.port);
     }},
    {"--api-key-file", "FILE", "",
     "Keys, a line NAME KEY RIGHTS [LIMITS] each; clients send one as authorization: Bearer or "
     "x-api-key. Read again when it changes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.api_key_file, flag.meaning);
     }},
    {"--allow-admin", "", "",
     "Without a key file: calls that change the server are taken from other machines as well",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.allow_admin, flag.meaning);
     }},
    {"--admin-address", "ADDRESS", "127.0.0.1", "Address of the admin ports",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.admin.address, flag.meaning);
     }},
    {"--admin-port", "PORT", "",
     "HTTP port of its own for calls that change the server, which no other port takes then; 0 "
     "takes a free one",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddPort(app, flag, options.admin.port);
     }},
    {"--admin-grpc-port", "PORT", "", "The same for gRPC",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddPort(app, flag, options.admin_grpc.port);
     }},
    {"--cors-allow-origin", "ORIGIN", "",
     "Origin of pages whose browsers may ask over HTTP; may be given more than once; * is any",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.cors_origins, flag.meaning)
           ->allow_extra_args(false);
     }},
    {"--grpc-use-ssl", "", "", "gRPC speaks TLS alone",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.grpc_tls.use, flag.meaning);
     }},
    {"--grpc-use-ssl-mutual", "", "",
     "gRPC clients must show a certificate that --grpc-root-cert has signed",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.grpc_tls.mutual, flag.meaning);
     }},
    {"--grpc-server-cert", "FILE", "",
     "Certificate of the server for gRPC, PEM; read again when it changes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_tls.certificate, flag.meaning);
     }},
    {"--grpc-server-key", "FILE", "", "Key of that certificate, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_tls.key, flag.meaning);
     }},
    {"--grpc-root-cert", "FILE", "", "Who signs certificates of gRPC clients, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_tls.root, flag.meaning);
     }},
    {"--http-use-ssl", "", "", "HTTP speaks TLS alone",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.http_tls.use, flag.meaning);
     }},
    {"--http-use-ssl-mutual", "", "",
     "HTTP clients must show a certificate that --http-root-cert has signed",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.http_tls.mutual, flag.meaning);
     }},
    {"--http-server-cert", "FILE", "",
     "Certificate of the server for HTTP, PEM; read again when it changes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_tls.certificate, flag.meaning);
     }},
    {"--http-server-key", "FILE", "", "Key of that certificate, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_tls.key, flag.meaning);
     }},
    {"--http-root-cert", "FILE", "", "Who signs certificates of HTTP clients, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_tls.root, flag.meaning);
     }},
    {"--grpc-max-connections", "N", "0",
     "gRPC connections at a time; 0: a third of the descriptors",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_connections, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-streams", "N", "1024", "Calls of one gRPC connection at a time",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_streams, flag.meaning)
           ->check(CLI::Range(1, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-connection-age-secs", "SECONDS", "0",
     "Age at which a gRPC connection is asked to end, a tenth more or less; 0: none",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_age_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-connection-age-grace-secs", "SECONDS", "0",
     "How long calls may go on then before they are cut off; 0: as they like",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_age_grace_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-connection-idle-secs", "SECONDS", "3600",
     "How long a gRPC connection may be without a call; 0: no limit",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_idle_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-keepalive-time", "MS", "7200000",
     "Silence after which a gRPC client is pinged; 0: never",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.keepalive_time_ms, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-keepalive-timeout", "MS", "20000", "How long it may take to answer the ping",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app
           .add_option(flag.name, options.grpc_connections.keepalive_timeout_ms, flag.meaning)
           ->check(CLI::Range(1, std::numeric_limits<int>::max()));
     }},
    {"--grpc-keepalive-permit-without-calls", "", "", "Ping gRPC clients that have no call as well",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.grpc_connections.keepalive_permit_without_calls,
                           flag.meaning);
     }},
    {"--grpc-http2-min-recv-ping-interval-without-data", "MS", "300000",
     "How often a gRPC client without a call may ping",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app
           .add_option(flag.name, options.grpc_connections.min_ping_interval_ms, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-http2-max-ping-strikes", "N", "2",
     "How many pings may come earlier before the connection ends",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_ping_strikes, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--http-max-connections", "N", "0",
     "HTTP connections at a time; 0: a third of the descriptors",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_max_connections, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--write-timeout-secs", "SECONDS", "30",
     "How long a client may read nothing of an answer before it is cut off",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.write_timeout_secs, flag.meaning)
           ->check(CLI::Range(1, std::numeric_limits<int>::max()));
     }},
    {"--in-flight-memory-mb", "MB", "0",
     "Memory of requests and answers under way, in MiB; more are refused at once; 0: half of what "
     "is there",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.in_flight_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--system-shared-memory", "", "",
     "Clients on this machine may have tensors in POSIX shared memory: any client may then read "
     "and "
     "write each object of it that the server may",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.system_shared_memory, flag.meaning);
     }},
    {"--connection-memory-mb", "MB", "0",
     "The part of it that one connection may take, in MiB; 0: half",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.connection_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--recipe-cache-memory-mb", "MB", "1024", "Memory that recipes may take, in MiB",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.recipe_cache_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
     }},
    {"--eager-cache-memory-mb", "MB", "64",
     "Memory that what eager runs prepare may take, in MiB: beside that of recipes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.eager_cache_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--arena-memory-mb", "MB", "0",
     "Memory that arenas of all streams may take, in MiB; 0: what is there",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.arena_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--parameter-memory-mb", "MB", "0",
     "Memory that parameters of all models may take, as stored and as kernels want them, in MiB; "
     "0: no limit",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.parameter_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--recipe-cache", "DIR", "",
     "Folder that keeps recipes, timed kernels and certificates over a restart; several servers "
     "may share it",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.recipe_cache, flag.meaning);
     }},
    {"--recipe-cache-disk-mb", "MB", "1024",
     "Size of that folder, in MiB; beyond it the files that are worth the least go",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.recipe_cache_disk_mb, flag.meaning)
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
     }},
    {"--frozen", "", "", "Capture nothing for a request: what no ready recipe serves is refused",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.frozen, flag.meaning);
     }},
    {"--eager", "", "",
     "Capture nothing: every model runs op by op, as `reprise.capture: off` has it",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.eager, flag.meaning);
     }},
    {"--op-library", "FILE.so", "",
     "A shared library with ops that models may name (the C interface of reprise_op.h); trusted "
     "code; may be given more than once",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.op_libraries, flag.meaning)
           ->allow_extra_args(false)
           ->check(CLI::ExistingFile);
     }},
    {"--device", "NAME", "cpu", "cpu, or reference: plain loops, slow, the definition of right",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<DeviceKind>(
           app, flag, options.device,
           {{"cpu", DeviceKind::kCpu}, {"reference", DeviceKind::kReference}});
     }},
    {"--streams", "N", "0", "Replays that may run at the same time; 0: one for each CPU",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.streams, flag.meaning)->check(CLI::Range(0, 1024));
     }},
    {"--threads-per-stream", "N", "0", "Threads of one replay; 0: chosen from CPUs and load",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.threads_per_stream, flag.meaning)
           ->check(CLI::Range(0, 1024));
     }},
    {"--max-isa", "ISA", "", "Highest instruction set to use, the libraries included",
     [](CLI::App& app, const Flag& flag, Options& options) {
       std::vector<std::pair<std::string, std::optional<Isa>>> choices;
       for (const NamedIsa& named : kIsas) {
         choices.emplace_back(named.name, ParseIsa(named.name));
       }
       return AddChoice(app, flag, options.max_isa, std::move(choices));
     }},
    {"--gemm-provider", "NAME", "auto",
     "Who multiplies matrices: own, openblas, or auto: own kernels, and what was timed to be "
     "clearly faster",
     [](CLI::App& app, const Flag& flag, Options& options) {
       std::vector<std::pair<std::string, GemmProvider>> choices;
       for (size_t i = 0; i < std::size(kGemmProviderNames); ++i) {
         choices.emplace_back(kGemmProviderNames[i], static_cast<GemmProvider>(i));
       }
       return AddChoice(app, flag, options.gemm_provider, std::move(choices));
     }},
    {"--drain-grace-secs", "SECONDS", "2",
     "How long requests are served after the signal that ends the server, so that clients and "
     "balancers see that it is not ready; 0: they are refused at once",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.drain_grace_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--exit-timeout-secs", "SECONDS", "30",
     "How long the process may take to end, with its requests",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.exit_timeout_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--max-queue-time", "SECONDS", "auto",
     "How long a request may have to wait by what is in front of it: more are refused at once. 0: "
     "no "
     "limit; auto: a second, or 20 replays of the largest bucket where these take longer",
     [](CLI::App& app, const Flag& flag, Options& options) {
       const auto read = [&options](const std::string& text) {
         double seconds = 0;
         if (text == "auto") {
           options.max_queue_seconds.reset();
         } else if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= 1e6) {
           options.max_queue_seconds = seconds;
         } else {
           throw CLI::ValidationError("--max-queue-time",
                                      "SECONDS is " + text + ", auto or a number is wanted");
         }
       };
       return app.add_option_function<std::string>(flag.name, read, flag.meaning);
     }},
    {"--log-format", "FORMAT", "text", "text, or json: one object a line",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<LogFormat>(app, flag, options.log_format,
                                   {{"text", LogFormat::kText}, {"json", LogFormat::kJson}});
     }},
    {"--log-level", "LEVELS", "info",
     "debug, info, warning or error; and with MODULE=debug the debug lines of some modules alone: "
     "info,capture=debug,store=debug. REPRISE_LOG of the environment where the flag is absent",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddParsed(app, flag, options.log_levels)->envname("REPRISE_LOG");
     }},
    {"--trace-file", "FILE", "",
     "Writes captures, loads and replays as a trace that Chrome and Perfetto show",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.trace_file, flag.meaning);
     }},
    {"--dump-graphs", "DIR", "", "Writes the graphs of each capture as text, a file a capture",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.dump_graphs, flag.meaning);
     }},
    {"--metrics-file", "FILE", "", "Writes all metrics, and every capture, as JSON",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.metrics_file, flag.meaning);
     }},
    {"--metrics-file-on", "TRIGGERS", "exit",
     "When --metrics-file is written: exit, capture, interval:10s; several with commas",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddParsed(app, flag, options.metrics_triggers);
     }},
    {"--access-log", "", "", "Log a line for each request: who asked for what, and how it went",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.access_log, flag.meaning);
     }},
};

// "; did you mean --grpc-port?" of the first word that is nearly a flag.
std::string SuggestionFor(const std::vector<std::string>& unknown) {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) names.emplace_back(flag.name);
  for (const std::string& word : unknown) {
    const std::string suggestion = DidYouMean(word.substr(0, word.find('=')), names);
    if (!suggestion.empty()) return suggestion;
  }
  return "";
}

// The parser's error in one line; where a flag lacks its value, which values there are.
std::string WordsOf(const CLI::App& app, const CLI::ParseError& error) {
  const std::string words = absl::StrReplaceAll(error.what(), {{"\n", " "}});
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return absl::StrCat(words, SuggestionFor(app.remaining()));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return words;
  for (const Flag& flag : kFlags) {
    if (!absl::StartsWith(words, absl::StrCat(flag.name, ":"))) continue;
    // "ISA:{baseline,avx2}", "PORT:INT in [0 - 65535]"
    return absl::StrCat(flag.name, " needs a value, ", app.get_option(flag.name)->get_type_name());
  }
  return words;
}

absl::Status CheckPortsDiffer(const Options& options) {
  const std::pair<const char*, int> ports[] = {{"--grpc-port", options.grpc.port},
                                               {"--http-port", options.http.port},
                                               {"--metrics-port", options.metrics.port},
                                               {"--admin-port", options.admin.port},
                                               {"--admin-grpc-port", options.admin_grpc.port}};
  for (const auto& [name, port] : ports) {
    for (const auto& [other_name, other_port] : ports) {
      if (name != other_name && port > 0 && port == other_port) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, " and ", other_name, " are both ", port));
      }
    }
  }
  return absl::OkStatus();
}

// All that TLS needs is there, and nothing is asked for that would not be used.
absl::Status CheckTls(const char* face, const TlsOptions& tls) {
  const auto flag = [face](const char* name) { return absl::StrCat("--", face, "-", name); };
  if (!tls.use) {
    for (const auto& [name, given] :
         {std::pair("use-ssl-mutual", tls.mutual),
          std::pair("server-cert", !tls.certificate.empty()),
          std::pair("server-key", !tls.key.empty()), std::pair("root-cert", !tls.root.empty())}) {
      if (given) {
        return absl::InvalidArgumentError(
            absl::StrCat(flag(name), " needs ", flag("use-ssl"), ": nothing is encrypted else"));
      }
    }
    return absl::OkStatus();
  }
  if (tls.certificate.empty() || tls.key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag("use-ssl"), " needs ", flag("server-cert"), " and ", flag("server-key")));
  }
  if (tls.mutual == tls.root.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag("use-ssl-mutual"), " and ", flag("root-cert"), " need each other"));
  }
  return absl::OkStatus();
}

absl::Status CheckMetricsFile(Options& options) {
  MetricsTriggers& triggers = options.metrics_triggers;
  const bool any = triggers.at_exit || triggers.at_capture || triggers.interval.count() > 0;
  if (any && options.metrics_file.empty()) {
    return absl::InvalidArgumentError("--metrics-file-on needs --metrics-file FILE");
  }
  if (!any) triggers.at_exit = true;
  return absl::OkStatus();
}

absl::Status CheckControl(const Options& options) {
  if (options.model_repositories.empty()) {
    return absl::InvalidArgumentError("--model-repository or --model is required");
  }
  if (options.load_models.empty() || options.model_control == ModelControl::kExplicit) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--load-model ", options.load_models[0],
                   " needs --model-control-mode explicit: other modes load every model"));
}

}  // namespace

std::vector<FlagInfo> FlagTable() {
  std::vector<FlagInfo> table;
  for (const Flag& flag : kFlags) {
    table.push_back({flag.name, flag.value, flag.default_value, flag.meaning});
  }
  return table;
}

absl::StatusOr<ParsedFlags> ParseFlags(int argc, const char* const* argv,
                                       absl::string_view version) {
  ParsedFlags parsed;
  Target target;
  CLI::App app("reprised: serves ONNX models on CPUs from captured recipes", "reprised");
  for (const Flag& flag : kFlags) {
    CLI::Option* option = flag.add(app, flag, target);
    if (*flag.value != '\0') option->type_name(flag.value)->default_str(flag.default_value);
  }
  app.set_version_flag("--version", absl::StrCat("reprised ", version));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    parsed.answer = app.help();
    return parsed;
  } catch (const CLI::CallForVersion&) {
    parsed.answer = absl::StrCat("reprised ", version, "\n");
    return parsed;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(WordsOf(app, error));
  }
  parsed.options = target;
  parsed.variant = target.variant;
  for (std::string& model : target.models) {
    parsed.options.model_repositories.push_back(std::move(model));
  }
  if (absl::Status status = CheckPortsDiffer(parsed.options); !status.ok()) return status;
  if (absl::Status status = CheckControl(parsed.options); !status.ok()) return status;
  for (const auto& [face, tls] :
       {std::pair("grpc", &parsed.options.grpc_tls), std::pair("http", &parsed.options.http_tls)}) {
    if (absl::Status status = CheckTls(face, *tls); !status.ok()) return status;
  }
  if (absl::Status status = CheckMetricsFile(parsed.options); !status.ok()) return status;
  return parsed;
}

}  // namespace reprise
