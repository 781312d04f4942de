#include "server/config/flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "command_line/completion.h"
#include "command_line/manual.h"
#include "command_line/parse.h"
#include "command_line/program.h"
#include "command_line/settings.h"
#include "runtime/base/cpu/compiled_tiers.h"
#include "runtime/base/status_macros.h"

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

// Variables of flags begin with it.
constexpr char kVariables[] = "REPRISED_";

// The rest of the command line, which is folded into the options once it is read.
struct Target : Options {
  std::vector<std::string> models;
  std::string config;  // the file of further flags, which is read by now
  bool print_config = false;
  bool manual = false;
  std::string completion;  // the shell
};

// Says why `text` is no NAME=PATH of a model; the empty text where it is one.
std::string TroubleOfModel(std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return absl::StrCat(text, " is not NAME=PATH");
  if (text.substr(0, equals).find('/') != std::string::npos) {
    return absl::StrCat(text, ": a name has no '/'");
  }
  // A place elsewhere, which main judges.
  if (absl::StrContains(text.substr(equals + 1), "://")) return "";
  std::error_code error;
  if (std::filesystem::exists(text.substr(equals + 1), error)) return "";
  return absl::StrCat("Path does not exist: ", text.substr(equals + 1));
}

// Says why `text` is no address of a collector; the empty text where it is one.
std::string TroubleOfEndpoint(std::string& text) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (absl::StartsWith(text, scheme) && text.size() > scheme.size()) return "";
  }
  return absl::StrCat(text, " is not the address of a collector: http://HOST:4318");
}

// Says why `text` cannot stand in a header; the empty text where it can.
std::string TroubleOfInstance(std::string& text) {
  const bool fits =
      !text.empty() && text.size() <= 256 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  return fits ? "" : "a name of 1 to 256 visible ASCII characters is needed";
}

// THE table of flags.
constexpr Flag kFlags[] = {
    {"--model-repository", "DIR", "",
     "Folder of models, <model>/<version>/model.onnx or <model>/onnx/model.onnx",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.model_repositories, flag.meaning)
           ->allow_extra_args(false)
           ->check(CLI::ExistingDirectory);
     }},
    {"--model", "NAME=PATH", "",
     "One model: its folder or file, or where it is fetched from: hf://ORG/REPO[@REVISION][:FILE], "
     "s3://BUCKET/KEY, gs://BUCKET/KEY, https://HOST/FILE (a model, or an archive)",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, static_cast<Target&>(options).models, flag.meaning)
           ->allow_extra_args(false)
           ->check(CLI::Validator(TroubleOfModel, ""));
     }},
    {"--variant", "VARIANT", "",
     "File of the folders that --model names: int8 takes model_int8.onnx",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.variant, flag.meaning);
     }},
    {"--model-cache", "DIR", "",
     "Folder that keeps fetched models; several servers may share it. Default: "
     "~/.cache/reprise/models",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.model_cache, flag.meaning);
     }},
    {"--max-download-mb", "MB", "20480",
     "Size of a fetched model, in MiB, and of the files that its archive unpacks to",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.max_download_mb, flag.meaning)
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
     }},
    {"--model-control-mode", "MODE", "none",
     "none: load every model at start. explicit: load and unload as clients ask. poll: load new "
     "and changed models, unload removed ones",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<ModelControl>(app, flag, options.model_control,
                                      {{"none", ModelControl::kNone},
                                       {"explicit", ModelControl::kExplicit},
                                       {"poll", ModelControl::kPoll}});
     }},
    {"--load-model", "NAME", "",
     "Model to load at start with --model-control-mode explicit; * is all",
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
     "Hints in a config.pbtxt that change no answer here (optimization, threads, GPUs). strict: "
     "refuse the load; warn: ignore each with a line in the log",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<ConfigStrictness>(
           app, flag, options.config_strictness,
           {{"strict", ConfigStrictness::kStrict}, {"warn", ConfigStrictness::kWarn}});
     }},
    {"--strict-readiness", "true|false", "true",
     "true: ready while every requested model can be served. false: ready once every model of the "
     "start is loaded or refused",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<bool>(app, flag, options.strict_readiness,
                              {{"true", true}, {"false", false}});
     }},
    {"--exit-on-error", "true|false", "false",
     "true: a model of the start that cannot be loaded ends the server, with exit code 1",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<bool>(app, flag, options.exit_on_error, {{"true", true}, {"false", false}});
     }},
    {"--fail-on-compile", "true|false", "false",
     "true: for tests: serve as usual, and end with exit code 3 if anything was compiled for a "
     "request once the server was ready; the log names each",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<bool>(app, flag, options.fail_on_compile,
                              {{"true", true}, {"false", false}});
     }},
    {"--allow-empty", "", "",
     "Report ready although no model can be served; --model-control-mode explicit does so anyway",
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
     "Address of inference over HTTP, health, the live page and metrics",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http.address, flag.meaning);
     }},
    {"--http-port", "PORT", "8000",
     "Port of inference over HTTP, health, the live page and metrics; 0 takes a free one",
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
     "Keys, one NAME KEY RIGHTS [LIMITS] on each line; clients send one as authorization: Bearer "
     "KEY or x-api-key: KEY. Read again when it changes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.api_key_file, flag.meaning);
     }},
    {"--allow-admin", "", "",
     "Without --api-key-file: accept calls that change the server from other machines as well",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.allow_admin, flag.meaning);
     }},
    {"--admin-address", "ADDRESS", "127.0.0.1", "Address of the admin ports",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.admin.address, flag.meaning);
     }},
    {"--admin-port", "PORT", "",
     "HTTP port for calls that change the server, which the other ports then refuse; 0 takes a "
     "free one",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddPort(app, flag, options.admin.port);
     }},
    {"--admin-grpc-port", "PORT", "",
     "gRPC port for calls that change the server, which the "
     "other ports then refuse; 0 takes a free one",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddPort(app, flag, options.admin_grpc.port);
     }},
    {"--page", "on|off", "on",
     "The live page at / of the HTTP port, which shows the server and tries its models; off: there "
     "is none",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<bool>(app, flag, options.page, {{"on", true}, {"off", false}});
     }},
    {"--cors-allow-origin", "ORIGIN", "",
     "Origin of web pages that may call the HTTP port (CORS); * allows any",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.cors_origins, flag.meaning)
           ->allow_extra_args(false);
     }},
    {"--grpc-use-ssl", "", "", "Accept only TLS on the gRPC port",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.grpc_tls.use, flag.meaning);
     }},
    {"--grpc-use-ssl-mutual", "", "",
     "Require a certificate signed by --grpc-root-cert from gRPC clients (mutual TLS)",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.grpc_tls.mutual, flag.meaning);
     }},
    {"--grpc-server-cert", "FILE", "",
     "Certificate of the server for gRPC, PEM; read again when it changes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_tls.certificate, flag.meaning);
     }},
    {"--grpc-server-key", "FILE", "", "Private key of the server's certificate, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_tls.key, flag.meaning);
     }},
    {"--grpc-root-cert", "FILE", "", "Authorities that sign the certificates of gRPC clients, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_tls.root, flag.meaning);
     }},
    {"--http-use-ssl", "", "", "Accept only TLS on the HTTP port",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.http_tls.use, flag.meaning);
     }},
    {"--http-use-ssl-mutual", "", "",
     "Require a certificate signed by --http-root-cert from HTTP clients (mutual TLS)",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.http_tls.mutual, flag.meaning);
     }},
    {"--http-server-cert", "FILE", "",
     "Certificate of the server for HTTP, PEM; read again when it changes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_tls.certificate, flag.meaning);
     }},
    {"--http-server-key", "FILE", "", "Private key of the server's certificate, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_tls.key, flag.meaning);
     }},
    {"--http-root-cert", "FILE", "", "Authorities that sign the certificates of HTTP clients, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_tls.root, flag.meaning);
     }},
    {"--metrics-use-ssl", "", "", "Accept only TLS on the metrics port",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.metrics_tls.use, flag.meaning);
     }},
    {"--metrics-use-ssl-mutual", "", "",
     "Require a certificate signed by --metrics-root-cert from scrapers (mutual TLS)",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.metrics_tls.mutual, flag.meaning);
     }},
    {"--metrics-server-cert", "FILE", "",
     "Certificate of the server for the metrics port, PEM; read again when it changes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.metrics_tls.certificate, flag.meaning);
     }},
    {"--metrics-server-key", "FILE", "", "Private key of the server's certificate, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.metrics_tls.key, flag.meaning);
     }},
    {"--metrics-root-cert", "FILE", "", "Authorities that sign the certificates of scrapers, PEM",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.metrics_tls.root, flag.meaning);
     }},
    {"--grpc-max-connections", "N", "0",
     "Most gRPC connections at a time; 0: a third of the process's file descriptors",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_connections, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-streams", "N", "1024", "Most calls of one gRPC connection at a time",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_streams, flag.meaning)
           ->check(CLI::Range(1, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-connection-age-secs", "SECONDS", "0",
     "Age at which a gRPC connection is asked to close, varied by up to a tenth; 0: never",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_age_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-connection-age-grace-secs", "SECONDS", "0",
     "Time that the calls of such a connection may still take before they are cut off; 0: no limit",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_age_grace_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-max-connection-idle-secs", "SECONDS", "3600",
     "Time after which a gRPC connection without a call is closed; 0: never",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_idle_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-keepalive-time", "MS", "7200000",
     "Time without traffic after which a gRPC client is pinged; 0: never",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.keepalive_time_ms, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-keepalive-timeout", "MS", "20000",
     "Time within which a gRPC client must answer the "
     "ping",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app
           .add_option(flag.name, options.grpc_connections.keepalive_timeout_ms, flag.meaning)
           ->check(CLI::Range(1, std::numeric_limits<int>::max()));
     }},
    {"--grpc-keepalive-permit-without-calls", "", "", "Ping gRPC clients without a call as well",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.grpc_connections.keepalive_permit_without_calls,
                           flag.meaning);
     }},
    {"--grpc-http2-min-recv-ping-interval-without-data", "MS", "300000",
     "Least time between two pings of a gRPC client that has no call",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app
           .add_option(flag.name, options.grpc_connections.min_ping_interval_ms, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--grpc-http2-max-ping-strikes", "N", "2",
     "Earlier pings after which the connection is closed",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.grpc_connections.max_ping_strikes, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--http-max-connections", "N", "0",
     "Most HTTP connections at a time; 0: a third of the process's file descriptors",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.http_max_connections, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--write-timeout-secs", "SECONDS", "30",
     "Time after which a client that reads nothing of an answer is cut off",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.write_timeout_secs, flag.meaning)
           ->check(CLI::Range(1, std::numeric_limits<int>::max()));
     }},
    {"--in-flight-memory-mb", "MB", "0",
     "Memory for requests and answers in flight, in MiB; requests above it are refused at once. "
     "0: half of the memory",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.in_flight_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--system-shared-memory", "", "",
     "Let clients on this machine pass tensors in POSIX shared memory. Any client can then read "
     "and write every shared memory object that the server can",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.system_shared_memory, flag.meaning);
     }},
    {"--connection-memory-mb", "MB", "0",
     "Part of --in-flight-memory-mb that one connection may take, in MiB; 0: half",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.connection_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--recipe-cache-memory-mb", "MB", "1024",
     "Memory for recipes, in MiB; above it the least "
     "recently used are evicted",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.recipe_cache_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
     }},
    {"--eager-cache-memory-mb", "MB", "64",
     "Memory for kernels that eager runs prepare, in MiB, in addition to the memory for recipes",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.eager_cache_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--arena-memory-mb", "MB", "0",
     "Memory for the arenas of all streams, in MiB. 0: 16 GiB for each stream, at most three "
     "quarters of the memory in all",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.arena_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--data-memory-mb", "MB", "0",
     "Memory whose size the values of requests decide, and not their shapes, of all requests "
     "together, in MiB; 0: an eighth of the memory",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.data_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--parameter-memory-mb", "MB", "0",
     "Memory for the parameters of all models, as stored and as packed for kernels, in MiB; 0: no "
     "limit",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.parameter_memory_mb, flag.meaning)
           ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
     }},
    {"--recipe-cache", "DIR", "",
     "Folder that keeps recipes, kernel timings and certificates over a restart; several servers "
     "may share it",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.recipe_cache, flag.meaning);
     }},
    {"--recipe-cache-disk-mb", "MB", "1024",
     "Size of the folder --recipe-cache, in MiB; above it the files of the least value are deleted",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.recipe_cache_disk_mb, flag.meaning)
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
     }},
    {"--store-key", "FILE", "",
     "File with a secret of 16 bytes or more: records of --recipe-cache get a MAC by it, and "
     "others are not used",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.store_key, flag.meaning);
     }},
    {"--frozen", "", "",
     "Never capture for a request: refuse a request that no ready recipe can "
     "serve",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.frozen, flag.meaning);
     }},
    {"--eager", "", "",
     "Never capture: run every model op by op, as `reprise.capture: off` does for one",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.eager, flag.meaning);
     }},
    {"--op-library", "FILE.so", "",
     "Shared library with ops that models may use (the C interface of reprise_op.h). Its code is "
     "trusted",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.op_libraries, flag.meaning)
           ->allow_extra_args(false)
           ->check(CLI::ExistingFile);
     }},
    {"--device", "NAME", "cpu",
     "cpu, or reference: plain loops that define the right answers, "
     "and are slow",
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
       return AddChoice(app, flag, options.max_isa, std::move(choices))
           ->check([](const std::string& name) { return WhyNotIsa(name); });
     }},
    {"--gemm-provider", "NAME", "auto",
     "Library that multiplies matrices: own, openblas, or auto: own kernels, and OpenBLAS where "
     "it was timed to be clearly faster",
     [](CLI::App& app, const Flag& flag, Options& options) {
       std::vector<std::pair<std::string, GemmProvider>> choices;
       for (size_t i = 0; i < std::size(kGemmProviderNames); ++i) {
         choices.emplace_back(kGemmProviderNames[i], static_cast<GemmProvider>(i));
       }
       return AddChoice(app, flag, options.gemm_provider, std::move(choices));
     }},
    {"--load-reports", "off|request|always|oob", "request",
     "Load reports (ORCA) for balancers. request: with answers to requests that ask by "
     "endpoint-load-metrics-format; always: with every answer; oob: as a stream alone, by "
     "OpenRcaService, which request and always have as well",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<LoadReportMode>(app, flag, options.load_reports,
                                        {{"off", LoadReportMode::kOff},
                                         {"request", LoadReportMode::kRequest},
                                         {"always", LoadReportMode::kAlways},
                                         {"oob", LoadReportMode::kOob}});
     }},
    {"--instance", "NAME", "",
     "Name of this server, in the header x-reprise-instance of every answer; none: no header",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.instance, flag.meaning)
           ->check(CLI::Validator(TroubleOfInstance, ""));
     }},
    {"--drain-grace-secs", "SECONDS", "2",
     "Time after SIGTERM for which requests are still served, so that load balancers see that the "
     "server is not ready; 0: refuse them at once",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.drain_grace_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--exit-timeout-secs", "SECONDS", "30",
     "Time within which the process ends after SIGTERM, accepted requests included",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.exit_timeout_secs, flag.meaning)
           ->check(CLI::Range(0, std::numeric_limits<int>::max()));
     }},
    {"--max-queue-time", "SECONDS", "auto",
     "Load shedding: refuse a request at once if the requests queued ahead of it will take longer "
     "than this. 0: no limit; auto: a second, or the time of 20 replays of the largest bucket if "
     "that is longer",
     [](CLI::App& app, const Flag& flag, Options& options) {
       const auto read = [&options](const std::string& text) {
         double seconds = 0;
         if (text == "auto") {
           options.max_queue_seconds.reset();
         } else if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= 1e6) {
           options.max_queue_seconds = seconds;
         } else {
           throw CLI::ValidationError("--max-queue-time",
                                      "SECONDS is " + text + ", it must be auto or a number");
         }
       };
       return app.add_option_function<std::string>(flag.name, read, flag.meaning);
     }},
    {"--log-format", "FORMAT", "text", "text, or json: one object on each line",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddChoice<LogFormat>(app, flag, options.log_format,
                                   {{"text", LogFormat::kText}, {"json", LogFormat::kJson}});
     }},
    {"--log-level", "LEVELS", "info",
     "debug, info, warning or error; MODULE=debug adds the debug lines of one module: "
     "info,capture=debug,store=debug. Without the flag, the environment variable REPRISE_LOG "
     "counts",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddParsed(app, flag, options.log_levels)->envname("REPRISE_LOG");
     }},
    {"--trace-file", "FILE", "",
     "Write captures, loads and replays as a trace for Chrome and Perfetto",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.trace_file, flag.meaning);
     }},
    {"--audit-share", "SHARE", "0.001",
     "Share of padded answers that are computed again, exact and alone, in the background, within "
     "1 % of the cores' time. A model with an answer that differs runs exact until it is loaded "
     "again; 0: none",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.audit_share, flag.meaning)
           ->check(CLI::Range(0.0, 1.0));
     }},
    {"--audit-dir", "DIR", "",
     "Write the requests whose audited answers differ; they hold a client's data. None: they are "
     "written nowhere",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.audit_dir, flag.meaning)
           ->check(CLI::ExistingDirectory);
     }},
    {"--dump-graphs", "DIR", "",
     "Write the graphs of each capture as text, one file for each "
     "capture",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.dump_graphs, flag.meaning);
     }},
    {"--metrics-file", "FILE", "", "Write all metrics, and every capture, as JSON",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.metrics_file, flag.meaning);
     }},
    {"--metrics-file-on", "TRIGGERS", "exit",
     "Events on which --metrics-file is written, separated by commas: exit, capture, interval:10s",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return AddParsed(app, flag, options.metrics_triggers);
     }},
    {"--metrics-detail", "", "",
     "Show every series on /metrics: by bucket and by reason, and those that stay 0",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.metrics_detail, flag.meaning);
     }},
    {"--access-log", "", "",
     "Log one line for each request: its key, model, sizes, times and "
     "outcome",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, options.access_log, flag.meaning);
     }},
    {"--trace-endpoint", "URL", "",
     "Collector that spans of requests are sent to, by OTLP over HTTP: http://HOST:4318",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.trace_endpoint, flag.meaning)
           ->check(CLI::Validator(TroubleOfEndpoint, ""));
     }},
    {"--trace-sample", "SHARE", "1",
     "Share of the requests that are traced, from 0 to 1, where the caller does not decide",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, options.trace_sample, flag.meaning)
           ->check(CLI::Range(0.0, 1.0));
     }},
    {"--config", "FILE", "",
     "YAML with further flags, `http-port: 9000`; a variable REPRISED_HTTP_PORT counts before it, "
     "the command line before both",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, static_cast<Target&>(options).config, flag.meaning);
     }},
    {"--print-config", "", "",
     "Print all flags as YAML, with where each value comes from, and exit",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, static_cast<Target&>(options).print_config, flag.meaning)
           ->configurable(false);
     }},
    {"--man", "", "", "Print the manual page, in the language of man, and exit",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_flag(flag.name, static_cast<Target&>(options).manual, flag.meaning)
           ->configurable(false);
     }},
    {"--completion", "SHELL", "", "Print the completion script of bash, zsh or fish, and exit",
     [](CLI::App& app, const Flag& flag, Options& options) {
       return app.add_option(flag.name, static_cast<Target&>(options).completion, flag.meaning)
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

void AddFlags(CLI::App& app, Target& target) {
  const char* group = "";
  for (const Flag& flag : kFlags) {
    for (const auto& [first, title] : kGroups) {
      if (absl::string_view(flag.name) == first) group = title;
    }
    CLI::Option* option = flag.add(app, flag, target);
    option->group(group);
    if (*flag.value != '\0') option->type_name(flag.value)->default_str(flag.default_value);
  }
}

// Returns the text that --man or --completion asks for; "" without either.
std::string AskedText(const CLI::App& app, const Target& target, absl::string_view version) {
  if (!target.manual && target.completion.empty()) return "";
  const command_line::Program program = command_line::Describe(app, std::string(version));
  return target.manual ? command_line::ManualPage(program)
                       : command_line::CompletionScript(program, target.completion);
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
  if (options.metrics_file.empty()) return absl::OkStatus();
  const std::filesystem::path path = std::filesystem::absolute(options.metrics_file);
  const std::string folder = path.parent_path().string();
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--metrics-file ", options.metrics_file, ": '",
                                                   folder,
                                                   "' cannot be written: ", std::strerror(errno)));
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--metrics-file ", options.metrics_file, " is a folder"));
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

// Joins `--grpc-use-ssl true`, as other servers' users write it, to `--grpc-use-ssl=true`.
std::vector<std::string> JoinBooleans(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const CLI::Option* const option =
        absl::StartsWith(words[i], "--") ? app.get_option_no_throw(words[i]) : nullptr;
    if (option == nullptr || option->get_items_expected_max() != 0) continue;
    if (words[i + 1] != "true" && words[i + 1] != "false") continue;
    absl::StrAppend(&words[i], "=", words[i + 1]);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return words;
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
  CLI::App app("Serves ONNX models on CPUs from captured recipes", "reprised");
  AddFlags(app, target);
  const std::vector<std::string> words = JoinBooleans(app, argc, argv);
  std::vector<const char*> joined;
  joined.reserve(words.size());
  for (const std::string& word : words) joined.push_back(word.c_str());
  ASSIGN_OR_RETURN(const command_line::Settings settings,
                   command_line::Settings::Read(app, kVariables, static_cast<int>(joined.size()),
                                                joined.data()));
  ASSIGN_OR_RETURN(command_line::Parsed line, settings.Parse(app, std::string(version)));
  parsed.unknown_variables = settings.unknown();
  parsed.answer = std::move(line.answer);
  if (parsed.answer.empty()) parsed.answer = AskedText(app, target, version);
  if (target.print_config) parsed.answer = settings.Text(app);
  if (!parsed.answer.empty()) return parsed;
  parsed.options = target;
  for (std::string& model : target.models) {
    parsed.options.model_repositories.push_back(std::move(model));
  }
  if (absl::Status status = CheckPortsDiffer(parsed.options); !status.ok()) return status;
  if (absl::Status status = CheckControl(parsed.options); !status.ok()) return status;
  for (const auto& [face, tls] :
       {std::pair("grpc", &parsed.options.grpc_tls), std::pair("http", &parsed.options.http_tls),
        std::pair("metrics", &parsed.options.metrics_tls)}) {
    if (absl::Status status = CheckTls(face, *tls); !status.ok()) return status;
  }
  if (absl::Status status = CheckMetricsFile(parsed.options); !status.ok()) return status;
  return parsed;
}

}  // namespace reprise
