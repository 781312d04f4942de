// Http2Server: one port that speaks gRPC: its threads, its connections.
//
// Threads: Start, Shutdown and the destructor from one thread. Methods of the routes run on the
// server's own threads, several at a time, and must not block for long.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http2/http2_connection.h"
#include "server/transport/tls_context.h"

namespace reprise {

struct Http2ServerOptions {
  std::string address;
  int port = 0;  // 0: any that is free
  int threads = 1;
  int max_connections = 1 << 16;    // open together; each holds a descriptor
  int spare_connections = 32;       // above them, for probes
  std::shared_ptr<TlsContext> tls;  // null: plain
  Http2Limits http2;
  Http2Times times;
  RpcLimits rpc;
};

class Http2Server {
 public:
  // `routes` and `account` outlive the server. Errors: UNAVAILABLE naming the address that could
  // not be bound.
  static absl::StatusOr<std::unique_ptr<Http2Server>> Start(Http2ServerOptions options,
                                                            const RpcRoutes& routes,
                                                            const ByteAccount& account);
  // Closes all open connections. No call may be held any more.
  ~Http2Server();

  // Returns the port that is bound, also when 0 was asked for.
  int port() const;
  int connections() const;

  // Accepts no connection from now on, and asks clients to send their next calls elsewhere;
  // calls that they send here nevertheless are taken. Waits until no connection is left, at
  // most until `deadline`. True: none is.
  bool Leave(std::chrono::steady_clock::time_point deadline);
  // Shuts down, and closes the connections open at `deadline`.
  void Shutdown(std::chrono::steady_clock::time_point deadline);

 private:
  class Impl;
  explicit Http2Server(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
