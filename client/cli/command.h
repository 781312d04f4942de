// The commands of `reprise` that ask a server: each file of this folder that is named after a
// command adds it. The commands that run the engine instead are in tools/command.h.
//
// A command registers its flags with the parser and gives the function that does the work; main
// calls it when the command was named. Whatever is wrong with the arguments alone is found while
// parsing (exit 2); the function's error is a failure (exit 1).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/http_json.h"
#include "client/cli/tls_flags.h"
#include "client/client.h"

namespace reprise::cli {

using Action = std::function<absl::Status()>;
// Adds a command to the parser; naming the command sets `action`.
using AddCommand = void(CLI::App& app, Action& action);

struct ProfileRequest {
  std::string path;       // names a model.onnx
  int64_t max_id = 1000;  // the largest made-up id
  bool json = false;
  std::string metrics_file;  // that gets compiles and replays as JSON; empty: none
};
// The profiler of `bench --profile` runs the engine, which this folder does not know: main hands it
// in. It adds the flags that need the flag `profile`, and returns the function that profiles.
using ProfileAction = std::function<absl::Status(const ProfileRequest& request)>;
using Profiler = std::function<ProfileAction(CLI::App& bench, CLI::Option* profile)>;

void AddBench(CLI::App& app, Action& action, const Profiler& profiler);
AddCommand AddInfer, AddFeed, AddRecipes, AddDump, AddStats, AddExplain, AddReport, AddWarmup,
    AddRecord, AddHealth, AddModels, AddLoad, AddUnload, AddFreeze, AddThaw, AddSleep, AddWake,
    AddMetadata, AddConfig, AddPs, AddDemo;

// Adds the option `name` ("-o,--output"), whose value, a `value` ("FILE"), goes to `field`.
template <typename T>
CLI::Option* AddOption(CLI::App& command, const std::string& name, T& field,
                       const std::string& value, const std::string& help) {
  return command.add_option(name, field, help)->type_name(value);
}

// Returns the key of $REPRISE_API_KEY; empty without one. Not a flag: command lines are for
// everybody to see.
std::string ApiKey();

// Where the server is (ServerAddress); the flags --server and --timeout-ms, and the flags of TLS.
struct ServerFlags {
  std::string server = "localhost:8001";
  int64_t timeout_ms = 30'000;
  TlsFlags tls;

  void Add(CLI::App& command);
  // Returns a connected client of the gRPC port. Errors: UNAVAILABLE in one line if no server
  // answers within 2 s; INVALID_ARGUMENT for an invalid address; errors of TlsFlags::Read.
  absl::StatusOr<std::unique_ptr<client::Client>> Connect() const;
  // Returns the HTTP port: as it is named, or as the server tells over gRPC. Errors: as Connect.
  absl::StatusOr<HttpTarget> Http() const;
};

// Adds the flag --json, for which a command prints as JSON what it would show as tables or lines.
CLI::Option* AddJson(CLI::App& command, bool& json);
// Prints it, indented; always OK.
absl::Status PrintJson(const google::protobuf::Message& message);
absl::Status PrintJson(const nlohmann::ordered_json& json);
// Prints a line and flushes it, for commands that print one after another as they come; always OK.
absl::Status PrintJsonLine(const nlohmann::ordered_json& json);
// Returns it indented, with a newline at its end. Bytes that are not UTF-8 are replaced.
std::string JsonText(const nlohmann::ordered_json& json);

}  // namespace reprise::cli
