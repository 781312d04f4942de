// ClientStream: the connection of one client: its bytes both ways, a deadline for each step, and
// whether the client is still there.
//
// It is an AsyncStream of Boost.Asio, so that a protocol reads and writes it with Boost's own
// operations and does not know what carries the bytes.
//
// Threads: all methods run on the stream's strand, but for Abort, which any thread may call.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace reprise {

// The place of a connection among those that its port may have. Given back when it goes.
class ConnectionPlace {
 public:
  explicit ConnectionPlace(std::shared_ptr<std::atomic<int>> taken) : taken_(std::move(taken)) {
    ++*taken_;
  }
  ~ConnectionPlace() {
    if (taken_ != nullptr) --*taken_;
  }
  ConnectionPlace(ConnectionPlace&& other) = default;
  ConnectionPlace& operator=(ConnectionPlace&&) = delete;

 private:
  std::shared_ptr<std::atomic<int>> taken_;
};

// Who wants to know that a client is gone.
class ClientWatcher {
 public:
  virtual ~ClientWatcher() = default;
  virtual void OnClientLeft() = 0;
};

class ClientStream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  ClientStream(boost::asio::ip::tcp::socket socket, ConnectionPlace place)
      : place_(std::move(place)), stream_(std::move(socket)) {}
  ClientStream(ClientStream&&) = default;

  // The members that Boost's AsyncStream requires.
  executor_type get_executor() noexcept { return stream_.get_executor(); }
  template <typename Buffers, typename Handler>
  auto async_read_some(const Buffers& buffers, Handler&& handler) {
    return stream_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  auto async_write_some(const Buffers& buffers, Handler&& handler) {
    return stream_.async_write_some(buffers, std::forward<Handler>(handler));
  }

  // The step that begins next, and those after it, fail when the time is over.
  void ExpireAfter(std::chrono::nanoseconds time) { stream_.expires_after(time); }
  void ExpireAt(std::chrono::steady_clock::time_point time) { stream_.expires_at(time); }
  void ExpireNever() { stream_.expires_never(); }

  // Tells `watcher`, once, when the client closes the connection or its sending half of it, which
  // looks the same until something is written. `self` is this stream: the watch ends when either of
  // both goes.
  void Watch(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher);

  // Ends our side: the client reads to the end of what was written.
  void CloseSending();
  // Ends the connection both ways; the step under way fails.
  void Abort();

 private:
  // Asks now and then whether the client is still there: its next bytes wait to be read.
  void Poll(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher);

  ConnectionPlace place_;
  boost::beast::tcp_stream stream_;
  std::optional<boost::asio::steady_timer> poll_;
};

}  // namespace reprise
