#include "server/http/http_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/http/http_connection.h"
#include "server/transport/listener.h"
#include "server/transport/network_threads.h"

namespace reprise {

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler handler)
      : context_(options, std::move(handler)),
        listener_(io_,
                  {.max_connections = options.max_connections,
                   .spare_connections = options.spare_connections},
                  options.tls,
                  [this](ClientStream stream) {
                    std::make_shared<HttpConnection>(std::move(stream), context_)->Start();
                  }),
        threads_(io_, options.account) {}

  absl::Status Listen(const Endpoint& endpoint) {
    RETURN_IF_ERROR(listener_.Listen(endpoint.address, endpoint.port, "HTTP"));
    threads_.Start(context_.options.threads);
    return absl::OkStatus();
  }

  int port() const { return listener_.port(); }
  int connections() const { return listener_.connections(); }
  OpenAnswers& open() { return context_.open; }
  void Drain() { context_.draining = true; }
  void Leave() {
    context_.draining = true;
    listener_.Close();
    std::vector<std::shared_ptr<HttpConnection>> connections;
    {
      MutexLock lock(context_.mutex);
      for (const auto& [raw, weak] : context_.connections) {
        if (auto connection = weak.lock()) connections.push_back(std::move(connection));
      }
    }
    for (auto& connection : connections) {
      boost::asio::post(connection->executor(), [connection] { connection->LeaveIfIdle(); });
    }
  }

 private:
  // Outlives the steps that io_ holds.
  HttpConnectionContext context_;
  boost::asio::io_context io_;
  Listener listener_;
  NetworkThreads threads_;  // end first
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Endpoint& endpoint,
                                                              const HttpServerOptions& options,
                                                              HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  const absl::Status status = impl->Listen(endpoint);
  if (!status.ok()) return status;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

void HttpServer::Drain() { impl_->Drain(); }

void HttpServer::Leave() {
  WhereMemoryAllows([this] { impl_->Leave(); });
}

int HttpServer::port() const { return impl_->port(); }
int HttpServer::connections() const { return impl_->connections(); }

bool HttpServer::WaitUntilSent(std::chrono::nanoseconds quiet, std::chrono::nanoseconds timeout) {
  return impl_->open().WaitUntilQuiet(quiet, timeout);
}

}  // namespace reprise
