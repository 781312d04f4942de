#include "client/cli/command.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "command_line/server_address.h"
#include "proto/message_json.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {

std::string ApiKey() {
  const char* key = std::getenv("REPRISE_API_KEY");
  return key == nullptr ? "" : key;
}

void ServerFlags::Add(CLI::App& command) {
  AddOption(command, "-s,--server", server, "HOST:PORT",
            "The server: its gRPC port, or any after grpc://, grpcs://, http:// or https://")
      ->envname("REPRISE_SERVER")
      ->capture_default_str();
  AddOption(command, "--timeout-ms", timeout_ms, "N", "Deadline of a call; 0 for none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  tls.Add(command);
}

absl::StatusOr<std::unique_ptr<client::Client>> ServerFlags::Connect() const {
  ASSIGN_OR_RETURN(const command_line::ServerAddress address,
                   command_line::ServerAddress::Parse(server));
  TlsFlags with = tls;
  with.use = with.use || address.use_tls;
  std::string target = address.host_and_port;
  if (address.is_http) {
    ASSIGN_OR_RETURN(const HttpTarget http, Http());
    ASSIGN_OR_RETURN(const nlohmann::json ports, GetJson(http, "/v2/ports"));
    const int port = ports.value("grpc", 0);
    if (port == 0)
      return absl::UnavailableError(absl::StrCat(server, " does not tell its gRPC port"));
    target = address.WithPort(port);
  }
  ASSIGN_OR_RETURN(client::TlsOptions tls_options, with.Read());
  // Why no connection stands is said once, by us: gRPC says it in lines of its own as well.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  auto client = std::make_unique<client::Client>(
      client::ClientOptions{.target = target,
                            .timeout = std::chrono::milliseconds(timeout_ms),
                            .api_key = ApiKey(),
                            .tls = std::move(tls_options)});
  if (!client->WaitForConnection(std::chrono::seconds(2)).ok()) {
    // A call says why; without it there is only that no connection stands.
    const absl::Status why = with.on() ? client->ServerReady().status() : absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "no server answers at ", target, with.on() ? " over TLS" : "",
        "; is reprised running, is this its --grpc-port, and does it speak ",
        with.on() ? "TLS? " : "plain gRPC? ", "(--server HOST:PORT sets another",
        with.on() ? ")" : ", --tls is for a port with TLS)", why.ok() ? "" : ": ", why.message()));
  }
  return client;
}

absl::StatusOr<HttpTarget> ServerFlags::Http() const {
  ASSIGN_OR_RETURN(const command_line::ServerAddress address,
                   command_line::ServerAddress::Parse(server));
  HttpTarget target = {.address = address.host_and_port, .tls = tls, .timeout_ms = timeout_ms};
  target.tls.use = tls.use || address.use_tls;
  if (timeout_ms == 0)
    target.timeout_ms = std::chrono::milliseconds(std::chrono::hours(24)).count();
  if (address.is_http) return target;
  ASSIGN_OR_RETURN(auto client, Connect());
  ASSIGN_OR_RETURN(const v1::GetPortsResponse ports, client->GetPorts());
  if (ports.http() == 0) {
    return absl::UnavailableError(
        absl::StrCat(server, " does not tell its HTTP port; give it as --server http://HOST:PORT"));
  }
  target.address = address.WithPort(static_cast<int>(ports.http()));
  return target;
}

CLI::Option* AddJson(CLI::App& command, bool& json) {
  return command.add_flag("--json", json,
                          "Print the answer as JSON, whose fields docs/cli.md describes");
}

absl::Status PrintJson(const google::protobuf::Message& message) {
  std::printf("%s\n", MessageToJson(message, /*indent=*/2).c_str());
  return absl::OkStatus();
}

absl::Status PrintJson(const nlohmann::ordered_json& json) {
  std::fputs(JsonText(json).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status PrintJsonLine(const nlohmann::ordered_json& json) {
  std::printf("%s\n",
              json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace reprise::cli
