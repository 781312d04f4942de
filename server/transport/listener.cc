#include "server/transport/listener.h"

#include <boost/asio/strand.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"

namespace reprise {

using boost::asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

// How long nobody is accepted after an attempt failed, for want of files mostly, or where there are
// too many.
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
  if (*connections_ >= max_connections_) return AcceptLater();
  acceptor_.async_accept(boost::asio::make_strand(io_), [this](Error error, tcp::socket socket) {
    if (error) return AcceptLater();
    if (!WhereMemoryAllows([&] {
          socket.set_option(tcp::no_delay(true));
          accepted_(ClientStream(std::move(socket), ConnectionPlace(connections_)));
        })) {
      return AcceptLater();
    }
    Accept();
  });
}

void Listener::AcceptLater() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](Error) { Accept(); });
}

}  // namespace reprise
