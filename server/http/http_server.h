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
#include "server/transport/byte_account.h"
#include "server/transport/tls_context.h"

namespace reprise {

using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

// A request that was answered, for the log.
struct AnsweredRequest {
  absl::string_view method;
  std::string path;
  int status = 200;
  absl::string_view key;  // the name of the client's key; empty where it has none
  int64_t bytes_in = 0;   // the bytes of its body
  int64_t bytes_out = 0;
  int64_t total_ns = 0;
  absl::string_view why;  // an error's words
};

struct HttpServerOptions {
  int threads = 1;
  // Connections at a time, and those above them for probes: more are not accepted until one of
  // them ends. Each holds a descriptor.
  int max_connections = 1 << 16;
  int spare_connections = 0;
  std::shared_ptr<TlsContext> tls;  // null: plain
  // A request's body may have this many bytes. Larger ones are answered 413.
  int64_t max_body_bytes = int64_t{64} << 10;
  // The size that a body may have when its compression is undone; 0: max_body_bytes. Asked for
  // each.
  std::function<int64_t(const RequestPath& path)> max_inflated_bytes = nullptr;
  // Bodies that are read or worked on, and answers that are not taken yet, count here. Requests
  // without room are answered 429. Outlives the server; null: nothing is counted.
  const ByteAccount* account = nullptr;
  // An answer may take this time to be read, and a second for each 64 KiB.
  std::chrono::nanoseconds write_timeout = std::chrono::seconds(30);
  // Adds headers to each answer; may be null.
  std::function<void(const HttpRequest& request, HttpFields& fields)> add_fields = nullptr;
  // Called for each request that is not logged elsewhere (HttpExchange::SetTold); may be
  // null.
  std::function<void(const AnsweredRequest& request)> on_answer = nullptr;
};

class HttpServer {
 public:
  // Errors: UNAVAILABLE naming the address that could not be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Endpoint& endpoint,
                                                           const HttpServerOptions& options,
                                                           HttpHandler handler);
  // Closes all open connections. No exchange may be held any more.
  ~HttpServer();

  // Returns the port that is bound, also when 0 was asked for.
  int port() const;
  int connections() const;

  // Closes each connection with its next answer from now on: clients turn to other servers.
  void Drain();
  // Accepts no connection from now on, and closes connections that wait for a request.
  void Leave();

  // Waits until no exchange is open and none ended for `quiet`, at most `timeout`. False: some are
  // open still.
  bool WaitUntilSent(std::chrono::nanoseconds quiet, std::chrono::nanoseconds timeout);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
