#include "server/transport/listener.h"

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"

namespace reprise {

using boost::asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

// How long no connection is accepted after an attempt failed, for want of files mostly, or where
// there are too many.
constexpr std::chrono::milliseconds kAcceptPause(100);

}  // namespace

Error Listener::Bind(const std::string& address, int port) {
  Error error;
  tcp::resolver resolver(io_);
  const auto found = resolver.resolve(address, absl::StrCat(port), tcp::resolver::passive, error);
  if (error) return error;
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (error) return error;
  // A port that another process has is an error; one whose connections linger is none.
  acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  acceptor_.bind(endpoint, error);
  if (error) return error;
  acceptor_.listen(tcp::socket::max_listen_connections, error);
  return error;
}

absl::Status Listener::Listen(const std::string& address, int port, const std::string& protocol) {
  if (const Error error = Bind(address, port)) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ":", port, " for ",
                                               protocol, ": ", error.message()));
  }
  port_ = acceptor_.local_endpoint().port();
  Accept();
  return absl::OkStatus();
}

void Listener::Accept() {
  if (*connections_ >= limits_.max_connections + limits_.spare_connections) return AcceptLater();
  acceptor_.async_accept(boost::asio::make_strand(io_), [this](Error error, tcp::socket socket) {
    const bool taken = !error && WhereMemoryAllows([&] { TakeOver(std::move(socket)); });
    if (closed_) return;
    taken ? Accept() : AcceptLater();
  });
}

void Listener::TakeOver(tcp::socket socket) {
  Error ignored;  // a client that has disconnected by now
  socket.set_option(tcp::no_delay(true), ignored);
  const bool is_spare = *connections_ >= limits_.max_connections;
  ClientStream stream(std::move(socket), ConnectionPlace(connections_, is_spare));
  if (tls_ == nullptr) return accepted_(std::move(stream));
  const auto shared = std::make_shared<ClientStream>(std::move(stream));
  boost::asio::post(shared->get_executor(), [this, shared] {
    shared->Handshake(*tls_, [this, shared](bool done) {
      if (done) WhereMemoryAllows([&] { accepted_(std::move(*shared)); });
    });
  });
}

void Listener::AcceptLater() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](Error) {
    if (!closed_) Accept();
  });
}

void Listener::AcceptWaiting() {
  Error error;
  acceptor_.non_blocking(true, error);
  while (!error && *connections_ < limits_.max_connections + limits_.spare_connections) {
    tcp::socket socket(boost::asio::make_strand(io_));
    acceptor_.accept(socket, error);
    if (!error) TakeOver(std::move(socket));
  }
}

void Listener::Close() {
  boost::asio::post(acceptor_.get_executor(), [this] {
    closed_ = true;
    WhereMemoryAllows([this] { AcceptWaiting(); });
    Error ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  });
}

}  // namespace reprise
