// Listener: a port, and the connections that clients make to it, a limited number at a time. Those
// of a port that speaks TLS are handed over once their handshake is done.
//
// A few connections above the limit are accepted as spare ones (see ConnectionPlace).
//
// Threads: Listen once, from any thread; connections are handed over on the threads that run the
// context.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/transport/client_stream.h"
#include "server/transport/tls_context.h"

namespace reprise {

class Listener {
 public:
  // Takes a new connection, whose steps run on a strand of its own. An exception for want of memory
  // ends that connection.
  using Accepted = std::function<void(ClientStream stream)>;

  struct Limits {
    int max_connections = 1;
    int spare_connections = 0;  // above them
  };
  // More than the limits are not accepted until one of them ends. `io` outlives the listener, which
  // outlives handlers that run on `io`. `tls`: null for a port of plain connections.
  Listener(boost::asio::io_context& io, const Limits& limits, std::shared_ptr<TlsContext> tls,
           Accepted accepted)
      : io_(io),
        limits_(limits),
        tls_(std::move(tls)),
        accepted_(std::move(accepted)),
        acceptor_(boost::asio::make_strand(io)),
        pause_(acceptor_.get_executor()) {}

  // Binds the port and begins to accept. UNAVAILABLE naming the address and the protocol where that
  // cannot be.
  absl::Status Listen(const std::string& address, int port, const std::string& protocol);

  // Returns the port that is bound, also when 0 was asked for.
  int port() const { return port_; }
  // Connections that are open.
  int connections() const { return *connections_; }
  // Accepts no connection from now on. Connections that the system has made by then are handed
  // over: it would reset them.
  void Close();

 private:
  boost::system::error_code Bind(const std::string& address, int port);
  void Accept();
  void AcceptWaiting();
  void AcceptLater();
  void TakeOver(boost::asio::ip::tcp::socket socket);

  // Constant after construction.
  boost::asio::io_context& io_;
  const Limits limits_;
  const std::shared_ptr<TlsContext> tls_;
  const Accepted accepted_;
  // Used on the acceptor's strand, once it listens.
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  int port_ = 0;
  bool closed_ = false;
  // Self-synchronised; shared with the connections, which may outlive the listener.
  const std::shared_ptr<std::atomic<int>> connections_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace reprise
