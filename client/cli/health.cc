// reprise health: is the server ready? Exit 0 or 1, for scripts and containers.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "command_line/server_address.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

constexpr std::chrono::milliseconds kPollInterval(100);

struct HealthFlags {
  ServerFlags server;
  std::string model;
  int64_t wait_secs = 0;
  bool json = false;
};

absl::Status CheckOnce(const HealthFlags& flags) {
  ASSIGN_OR_RETURN(const command_line::ServerAddress address,
                   command_line::ServerAddress::Parse(flags.server.server));
  if (address.is_http) {
    // Its health needs no key, unlike a question for the other port.
    ASSIGN_OR_RETURN(const HttpTarget target, flags.server.Http());
    return GetJson(target, flags.model.empty() ? "/v2/health/ready"
                                               : absl::StrCat("/v2/models/", flags.model, "/ready"))
        .status();
  }
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const bool ready,
                   flags.model.empty() ? client->ServerReady() : client->ModelReady(flags.model));
  if (ready) return absl::OkStatus();
  return absl::UnavailableError(
      (flags.model.empty() ? "the server" : "model '" + flags.model + "'") + " is not ready");
}

absl::Status RunHealth(const HealthFlags& flags) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(flags.wait_secs);
  absl::Status status = CheckOnce(flags);
  while (!status.ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPollInterval);
    status = CheckOnce(flags);
  }
  if (flags.json) {
    nlohmann::ordered_json answer = {{"ready", status.ok()}};
    if (!flags.model.empty()) answer["model"] = flags.model;
    if (!status.ok()) answer["reason"] = std::string(status.message());
    std::printf("%s\n", answer.dump().c_str());
  }
  RETURN_IF_ERROR(status);
  if (flags.json) return absl::OkStatus();
  std::printf("%s is ready\n",
              flags.model.empty() ? "the server" : ("model '" + flags.model + "'").c_str());
  return absl::OkStatus();
}

}  // namespace

void AddHealth(CLI::App& app, Action& action) {
  auto flags = std::make_shared<HealthFlags>();
  CLI::App* command = app.add_subcommand("health", "Exit 0 if the server, or one model, is ready");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Name of a model");
  command
      ->add_option("--wait-secs", flags->wait_secs,
                   "Retry for this many seconds, while a server starts and loads its models")
      ->check(CLI::NonNegativeNumber);
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunHealth(*flags); }; });
}

}  // namespace reprise::cli
