// HttpServer: one port. Connections are asynchronous: thousands of them, clients that send or read
// byte by byte, and requests that take long hold no thread.
//
// Threads: Start and the destructor from one thread; WaitUntilSent from any. The handler is called
// on the server's own threads, several at a time, and must not block for long.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/config/options.h"
#include "server/http/http_message.h"

namespace reprise {

using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

struct HttpServerOptions {
  int threads = 1;
  // Connections at a time: more are not accepted until one of them ends. Each holds a descriptor.
  int max_connections = 1 << 16;
  // A request's body may have this many bytes. Larger ones are answered 413.
  int64_t max_body_bytes = int64_t{64} << 10;
  // All bodies that are read or worked on at a time share this. A body beyond it is answered 503.
  int64_t max_all_body_bytes = int64_t{16} << 20;
};

class HttpServer {
 public:
  // Errors: UNAVAILABLE naming the address that could not be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Endpoint& endpoint,
                                                           const HttpServerOptions& options,
                                                           HttpHandler handler);
  // Cuts off what is open. Nobody may hold an exchange any more.
  ~HttpServer();

  // The port that is bound, also when 0 was asked for.
  int port() const;

  // From now on each connection is closed with its next answer: clients turn to other servers.
  void Drain();

  // Waits until no exchange is open and none ended for `quiet`, at most `timeout`. False: some are
  // open still.
  bool WaitUntilSent(std::chrono::nanoseconds quiet, std::chrono::nanoseconds timeout);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
