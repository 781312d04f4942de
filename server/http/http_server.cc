#include "server/http/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

// Scrapes, probes and a person's browser: a few threads are plenty, and idle connections must not
// hold one for long.
constexpr int kThreads = 4;
constexpr int kKeepAliveSeconds = 2;
constexpr int kTimeoutSeconds = 5;

}  // namespace

HttpServer::HttpServer() : server_(std::make_unique<httplib::Server>()) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Endpoint& endpoint,
                                                              std::vector<HttpPage> pages) {
  std::unique_ptr<HttpServer> http(new HttpServer);
  httplib::Server& server = *http->server_;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_keep_alive_timeout(kKeepAliveSeconds);
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  // The library's default shares a port between processes silently.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  for (HttpPage& page : pages) {
    server.Get(page.path, [reply = std::move(page.reply)](const httplib::Request&,
                                                          httplib::Response& response) {
      HttpReply made = reply();
      response.status = made.status;
      response.set_content(made.body, made.content_type);
    });
  }
  if (endpoint.port == 0) {
    http->port_ = server.bind_to_any_port(endpoint.address);
  } else if (server.bind_to_port(endpoint.address, endpoint.port)) {
    http->port_ = endpoint.port;
  }
  if (http->port_ <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", endpoint.address, ":", endpoint.port, " for HTTP"));
  }
  http->thread_ = std::thread([&server] { server.listen_after_bind(); });
  return http;
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  // Stopping before the thread listens would be lost.
  while (!server_->is_running()) std::this_thread::yield();
  server_->stop();
  thread_.join();
}

}  // namespace reprise
