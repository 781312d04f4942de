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

void AddInfer(CLI::App& app, Action& action);
void AddFeed(CLI::App& app, Action& action);
void AddBench(CLI::App& app, Action& action, const Profiler& profiler);
void AddRecipes(CLI::App& app, Action& action);
void AddDump(CLI::App& app, Action& action);
void AddStats(CLI::App& app, Action& action);
void AddExplain(CLI::App& app, Action& action);
void AddReport(CLI::App& app, Action& action);
void AddWarmup(CLI::App& app, Action& action);
void AddRecord(CLI::App& app, Action& action);
void AddHealth(CLI::App& app, Action& action);
void AddModels(CLI::App& app, Action& action);
void AddLoad(CLI::App& app, Action& action);
void AddUnload(CLI::App& app, Action& action);
void AddFreeze(CLI::App& app, Action& action);
void AddThaw(CLI::App& app, Action& action);
void AddSleep(CLI::App& app, Action& action);
void AddWake(CLI::App& app, Action& action);
void AddMetadata(CLI::App& app, Action& action);
void AddConfig(CLI::App& app, Action& action);
void AddPs(CLI::App& app, Action& action);
void AddDemo(CLI::App& app, Action& action);

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
