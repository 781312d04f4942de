// HttpServer: one port with a few fixed pages.
//
// Threads: Start and Stop from one thread; pages are called from the server's own threads, several
// at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace httplib {
class Server;
}

namespace reprise {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpPage {
  std::string path;  // "/metrics"
  std::function<HttpReply()> reply;
};

class HttpServer {
 public:
  // Binds and serves GET and HEAD of the pages; every other path is 404. Errors: UNAVAILABLE naming
  // the address that could not be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Endpoint& endpoint,
                                                           std::vector<HttpPage> pages);
  // Finishes the replies under way.
  ~HttpServer();

  // The port that is bound, also when 0 was asked for.
  int port() const { return port_; }

 private:
  HttpServer();

  const std::unique_ptr<httplib::Server> server_;
  std::thread thread_;
  int port_ = 0;
};

}  // namespace reprise
