#include "server/http/http_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "server/http/http_connection.h"

namespace reprise {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

// How long nobody is accepted after an attempt failed, for want of files mostly, or where there are
// too many.
constexpr std::chrono::milliseconds kAcceptPause(100);

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler handler)
      : context_(options, std::move(handler)) {}
  ~Impl() {
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status Listen(const Endpoint& endpoint) {
    const auto failed = [&](const Error& error) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", endpoint.address, ":",
                                                 endpoint.port, " for HTTP: ", error.message()));
    };
    Error error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(endpoint.address, absl::StrCat(endpoint.port),
                                        tcp::resolver::passive, error);
    if (error) return failed(error);
    const tcp::endpoint address = found.begin()->endpoint();
    acceptor_.open(address.protocol(), error);
    if (error) return failed(error);
    // A port that another process has is an error; one whose connections linger is none.
    acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    acceptor_.bind(address, error);
    if (error) return failed(error);
    acceptor_.listen(tcp::socket::max_listen_connections, error);
    if (error) return failed(error);
    port_ = acceptor_.local_endpoint().port();
    Accept();
    for (int i = 0; i < context_.options.threads; ++i) {
      threads_.emplace_back([this] {
        // What a step throws for want of memory ends its connection.
        while (!WhereMemoryAllows([&] { io_.run(); })) {
        }
      });
    }
    return absl::OkStatus();
  }

  int port() const { return port_; }
  OpenAnswers& open() { return context_.open; }
  void Drain() { context_.draining = true; }

 private:
  void Accept() {
    if (context_.connections >= context_.options.max_connections) return AcceptLater();
    acceptor_.async_accept(asio::make_strand(io_), [this](Error error, tcp::socket socket) {
      if (error) return AcceptLater();
      if (!WhereMemoryAllows([&] {
            socket.set_option(tcp::no_delay(true));
            std::make_shared<HttpConnection>(std::move(socket), context_)->ReadRequest();
          })) {
        return AcceptLater();
      }
      Accept();
    });
  }
  void AcceptLater() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](Error) { Accept(); });
  }

  // Outlives the steps that io_ holds.
  HttpConnectionContext context_;
  asio::io_context io_;
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  int port_ = 0;
  std::vector<std::thread> threads_;
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

int HttpServer::port() const { return impl_->port(); }

bool HttpServer::WaitUntilSent(std::chrono::nanoseconds quiet, std::chrono::nanoseconds timeout) {
  return impl_->open().WaitUntilQuiet(quiet, timeout);
}

}  // namespace reprise
