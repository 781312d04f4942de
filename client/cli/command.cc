#include "client/cli/command.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/message_json.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {

std::string ApiKey() {
  const char* key = std::getenv("REPRISE_API_KEY");
  return key == nullptr ? "" : key;
}

void ServerFlags::Add(CLI::App& command) {
  command.add_option("-s,--server", server, "Address of the server's gRPC port")
      ->envname("REPRISE_SERVER")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command.add_option("--timeout-ms", timeout_ms, "Deadline of a call; 0 for none")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->capture_default_str();
  tls.Add(command);
}

absl::StatusOr<std::unique_ptr<client::Client>> ServerFlags::Connect() const {
  ASSIGN_OR_RETURN(client::TlsOptions tls_options, tls.Read());
  // Why no connection stands is said once, by us: gRPC says it in lines of its own as well.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  auto client = std::make_unique<client::Client>(
      client::ClientOptions{.target = server,
                            .timeout = std::chrono::milliseconds(timeout_ms),
                            .api_key = ApiKey(),
                            .tls = std::move(tls_options)});
  if (!client->WaitForConnection(std::chrono::seconds(2)).ok()) {
    // A call says why; without it there is only that no connection stands.
    const absl::Status why = tls.on() ? client->ServerReady().status() : absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "no server answers at ", server, tls.on() ? " over TLS" : "",
        "; is reprised running, is this its --grpc-port, and does it speak ",
        tls.on() ? "TLS? " : "plain gRPC? ", "(--server HOST:PORT sets another",
        tls.on() ? ")" : ", --tls is for a port with TLS)", why.ok() ? "" : ": ", why.message()));
  }
  return client;
}

void AddJson(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print the answer as JSON, whose fields docs/cli.md describes");
}

absl::Status PrintJson(const google::protobuf::Message& message) {
  std::printf("%s\n", MessageToJson(message, /*indent=*/2).c_str());
  return absl::OkStatus();
}

}  // namespace reprise::cli
