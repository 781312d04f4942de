// reprise health: is the server ready? Exit 0 or 1, for scripts and containers.

#include <cstdio>

#include "client/cli/command.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

struct HealthFlags {
  ServerFlags server;
  std::string model;
};

absl::Status RunHealth(const HealthFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const bool ready,
                   flags.model.empty() ? client->ServerReady() : client->ModelReady(flags.model));
  const std::string who = flags.model.empty() ? "the server" : "model '" + flags.model + "'";
  if (!ready) return absl::UnavailableError(who + " is not ready");
  std::printf("%s is ready\n", who.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddHealth(CLI::App& app, Action& action) {
  auto flags = std::make_shared<HealthFlags>();
  CLI::App* command = app.add_subcommand("health", "Exit 0 if the server, or one model, is ready");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Name of a model");
  command->callback([flags, &action] { action = [flags] { return RunHealth(*flags); }; });
}

}  // namespace reprise::cli
