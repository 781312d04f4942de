// ServerAddress: the value of --server, for commands that ask over gRPC and for those over HTTP.
//
//   HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT     the gRPC port; the last one speaks TLS
//   http://HOST:PORT, https://HOST:PORT                the HTTP port
//
// A server tells over each of the two ports which the other one is.
//
// Threads: pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise::command_line {

struct ServerAddress {
  bool is_http = false;
  bool use_tls = false;
  std::string host_and_port;

  // Errors: INVALID_ARGUMENT with the known forms.
  static absl::StatusOr<ServerAddress> Parse(absl::string_view text);
  // Returns the same host with another port.
  std::string WithPort(int port) const;
};

}  // namespace reprise::command_line
