// The commands of `reprise`: each file of this folder that is named after a command adds it.
//
// A command registers its flags with the parser and gives the function that does the work; main
// calls it when the command was named. Whatever is wrong with the arguments alone is found while
// parsing (exit 2); the function's error is a failure (exit 1).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"

namespace reprise::cli {

using Action = std::function<absl::Status()>;

void AddInfer(CLI::App& app, Action& action);
void AddBench(CLI::App& app, Action& action);
void AddRecipes(CLI::App& app, Action& action);
void AddDump(CLI::App& app, Action& action);
void AddStats(CLI::App& app, Action& action);
void AddPlan(CLI::App& app, Action& action);
void AddDynamicity(CLI::App& app, Action& action);
void AddExplain(CLI::App& app, Action& action);
void AddWarmup(CLI::App& app, Action& action);
void AddHealth(CLI::App& app, Action& action);
void AddCheck(CLI::App& app, Action& action);
void AddDemo(CLI::App& app, Action& action);
void AddStore(CLI::App& app, Action& action);

// Where the server is; the flags --server and --timeout-ms.
struct ServerFlags {
  std::string server = "localhost:8001";
  int64_t timeout_ms = 30'000;

  void Add(CLI::App& command);
  // A client whose connection stands; UNAVAILABLE in one line if no server answers within 2 s.
  absl::StatusOr<std::unique_ptr<client::Client>> Connect() const;
};

// Adds the flag --max-isa; `name` has its default and gets its value, a name of kIsaNames.
CLI::Option* AddMaxIsa(CLI::App& command, std::string& name, const std::string& meaning);

}  // namespace reprise::cli
