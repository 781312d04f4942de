// ClientStream: the connection of one client: its bytes both ways, plain or by TLS, a deadline for
// each step, the client's identity, and whether it is still there.
//
// It is an AsyncStream of Boost.Asio, so that a protocol reads and writes it with Boost's own
// operations and does not know the transport of the bytes. A protocol that does its own buffering
// takes ReadNow, WriteNow and AsyncWait: a connection that waits holds no buffer then.
//
// Threads: all methods run on the stream's strand, except for Abort, which any thread may call.
#pragma once

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "server/transport/connection_place.h"
#include "server/transport/peer.h"
#include "server/transport/tls_context.h"

namespace reprise {

// Is told that a client has disconnected.
class ClientWatcher {
 public:
  virtual ~ClientWatcher() = default;
  virtual void OnClientLeft() = 0;
};

class ClientStream {
 public:
  using Error = boost::system::error_code;
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  ClientStream(Socket socket, ConnectionPlace place);
  ClientStream(ClientStream&&) = default;
  ClientStream& operator=(ClientStream&&) = default;

  // Returns the client's identity; complete once a handshake is over.
  const std::shared_ptr<const Peer>& peer() const { return core_->peer; }
  // Returns whether the connection is one of the few above the port's limit: see ConnectionPlace.
  bool is_spare() const { return core_->place.is_spare(); }

  // Begins TLS; `done` learns whether it came about. Nothing is read or written before.
  void Handshake(TlsContext& tls, std::function<void(bool)> done);

  // The outcome of an attempt to move bytes.
  enum class State { kMoved, kWaitsToRead, kWaitsToWrite, kEnded };
  struct Moved {
    State state = State::kMoved;
    size_t bytes = 0;
  };
  // Moves as many bytes as possible at once. kEnded: the client has closed, or the connection is
  // broken.
  Moved ReadNow(void* to, size_t size) { return core_->Read(to, size); }
  Moved WriteNow(const void* from, size_t size) { return core_->Write(from, size); }
  // Calls `handler(Error)` when the attempt that returned `state` may be made again.
  template <typename Handler>
  void AsyncWait(State state, Handler&& handler) {
    core_->socket.async_wait(WaitOf(state), std::forward<Handler>(handler));
  }

  // Provide the members that Boost's AsyncStream requires.
  executor_type get_executor() noexcept { return core_->socket.get_executor(); }
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (core_->session == nullptr) {
      core_->socket.async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      const auto first = FirstOf<boost::asio::mutable_buffer>(buffers);
      Move(false, first.data(), first.size(), std::forward<Handler>(handler));
    }
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (core_->session == nullptr) {
      core_->socket.async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      const auto first = FirstOf<boost::asio::const_buffer>(buffers);
      Move(true, const_cast<void*>(first.data()), first.size(), std::forward<Handler>(handler));
    }
  }

  // Lets the steps under way, and those after them, fail when the time is over.
  void ExpireAfter(std::chrono::nanoseconds time) {
    ExpireAt(std::chrono::steady_clock::now() + time);
  }
  void ExpireAt(std::chrono::steady_clock::time_point time);
  void ExpireNever() { core_->deadline = std::chrono::steady_clock::time_point::max(); }

  // Tells `watcher`, once, when the client closes the connection or its sending half of it, which
  // looks the same until something is written. `self` is this stream: the watch ends when either of
  // both goes.
  void Watch(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher);

  // Returns whether the client has closed its side, even where bytes that it sent before are not
  // read yet.
  bool HasLeft() const;

  // Ends our side: the client reads to the end of the written bytes.
  void CloseSending();
  // Ends the connection both ways; the step under way fails.
  void Abort() { core_->Abort(); }

 private:
  using Clock = std::chrono::steady_clock;

  // State that stays where it is while the stream moves to its owner.
  struct Core {
    Core(Socket of, ConnectionPlace at)
        : place(std::move(at)), socket(std::move(of)), timer(socket.get_executor()) {}
    Moved Read(void* to, size_t size);
    Moved Write(const void* from, size_t size);
    // Returns the state that the last call of OpenSSL, which returned `result`, has left.
    Moved StateOf(int result);
    void Abort();

    ConnectionPlace place;
    Socket socket;
    std::unique_ptr<SSL, decltype(&SSL_free)> session{nullptr, SSL_free};  // null: plain
    std::shared_ptr<const Peer> peer;
    Clock::time_point deadline = Clock::time_point::max();
    // Fires at `alarm` (max: it is not set), which may be before the deadline.
    boost::asio::steady_timer timer;
    Clock::time_point alarm = Clock::time_point::max();
    std::optional<boost::asio::steady_timer> poll;
  };

  static Socket::wait_type WaitOf(State state) {
    return state == State::kWaitsToWrite ? Socket::wait_write : Socket::wait_read;
  }
  // Returns the first part of a sequence of buffers that is not empty.
  template <typename Buffer, typename Buffers>
  static Buffer FirstOf(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto it = boost::asio::buffer_sequence_begin(buffers); it != end; ++it) {
      if (const Buffer buffer = *it; buffer.size() > 0) return buffer;
    }
    return Buffer();
  }

  // Moves some bytes by TLS: tries, waits, and tries again.
  struct MoveStep {
    std::shared_ptr<Core> core;
    bool writes;
    void* bytes;
    size_t size;
    bool is_first = true;

    template <typename Self>
    void operator()(Self& self, Error error = {}) {
      // The first attempt is not made where the caller stands: it must not be answered there.
      if (std::exchange(is_first, false)) {
        boost::asio::post(core->socket.get_executor(), std::move(self));
        return;
      }
      if (error) return self.complete(error, 0);
      const Moved moved = size == 0 ? Moved{}
                          : writes  ? core->Write(bytes, size)
                                    : core->Read(bytes, size);
      if (moved.state == State::kMoved) return self.complete(Error(), moved.bytes);
      if (moved.state == State::kEnded) return self.complete(boost::asio::error::eof, 0);
      Socket& socket = core->socket;
      socket.async_wait(WaitOf(moved.state), std::move(self));
    }
  };
  template <typename Handler>
  void Move(bool writes, void* bytes, size_t size, Handler&& handler) {
    boost::asio::async_compose<Handler, void(Error, size_t)>(MoveStep{core_, writes, bytes, size},
                                                             handler, core_->socket);
  }

  // Goes on with a handshake, as long as its client does.
  static void Shake(const std::shared_ptr<Core>& core, std::function<void(bool)> done);
  static void SetAlarm(const std::shared_ptr<Core>& core);
  // Asks now and then whether the client is still there: its next bytes wait to be read.
  void Poll(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher);

  std::shared_ptr<Core> core_;
};

}  // namespace reprise
