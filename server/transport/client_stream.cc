#include "server/transport/client_stream.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <limits>
#include <string>

#include "runtime/base/memory_net.h"

namespace reprise {
namespace {

using Error = boost::system::error_code;

constexpr std::chrono::milliseconds kPollTime(200);
constexpr std::chrono::seconds kHandshakeTime(10);

std::shared_ptr<Peer> PeerOf(const boost::asio::ip::tcp::socket& socket) {
  auto peer = std::make_shared<Peer>();
  Error error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return peer;
  auto address = endpoint.address();
  // An IPv4 client of a socket that takes both kinds.
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
  }
  peer->address = address.to_string();
  peer->port = endpoint.port();
  peer->is_local = address.is_loopback();
  return peer;
}

// Returns the subject of the certificate that the client has shown; "" where it has shown none.
std::string SubjectOf(const SSL* session) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(session),
                                                                X509_free);
  if (certificate == nullptr) return "";
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), BIO_free);
  if (text == nullptr) return "";
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate.get()), 0, XN_FLAG_RFC2253);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
}

}  // namespace

ClientStream::ClientStream(Socket socket, ConnectionPlace place)
    : core_(std::make_shared<Core>(std::move(socket), std::move(place))) {
  Error ignored;
  core_->socket.non_blocking(true, ignored);
  core_->peer = PeerOf(core_->socket);
}

ClientStream::Moved ClientStream::Core::Read(void* to, size_t size) {
  if (session != nullptr) {
    ERR_clear_error();
    size_t bytes = 0;
    const int result = SSL_read_ex(session.get(), to, size, &bytes);
    return result == 1 ? Moved{State::kMoved, bytes} : StateOf(result);
  }
  while (true) {
    const ssize_t bytes = recv(socket.native_handle(), to, size, 0);
    if (bytes > 0) return {State::kMoved, static_cast<size_t>(bytes)};
    if (bytes < 0 && errno == EINTR) continue;
    const bool waits = bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return {waits ? State::kWaitsToRead : State::kEnded, 0};
  }
}

ClientStream::Moved ClientStream::Core::Write(const void* from, size_t size) {
  if (session != nullptr) {
    ERR_clear_error();
    size_t bytes = 0;
    const int result = SSL_write_ex(session.get(), from, size, &bytes);
    return result == 1 ? Moved{State::kMoved, bytes} : StateOf(result);
  }
  while (true) {
    const ssize_t bytes = send(socket.native_handle(), from, size, MSG_NOSIGNAL);
    if (bytes >= 0) return {State::kMoved, static_cast<size_t>(bytes)};
    if (errno == EINTR) continue;
    const bool waits = errno == EAGAIN || errno == EWOULDBLOCK;
    return {waits ? State::kWaitsToWrite : State::kEnded, 0};
  }
}

ClientStream::Moved ClientStream::Core::StateOf(int result) {
  switch (SSL_get_error(session.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {State::kWaitsToRead, 0};
    case SSL_ERROR_WANT_WRITE:
      return {State::kWaitsToWrite, 0};
    default:
      return {State::kEnded, 0};
  }
}

void ClientStream::Handshake(TlsContext& tls, std::function<void(bool)> done) {
  core_->session = tls.NewSession();
  if (core_->session == nullptr ||
      SSL_set_fd(core_->session.get(), core_->socket.native_handle()) != 1) {
    return done(false);
  }
  SSL_set_accept_state(core_->session.get());
  ExpireAfter(kHandshakeTime);
  Shake(core_, std::move(done));
}

void ClientStream::Shake(const std::shared_ptr<Core>& core, std::function<void(bool)> done) {
  ERR_clear_error();
  const int result = SSL_do_handshake(core->session.get());
  if (result == 1) {
    auto peer = std::make_shared<Peer>(*core->peer);
    peer->encrypted = true;
    peer->subject = SubjectOf(core->session.get());
    core->peer = std::move(peer);
    core->deadline = Clock::time_point::max();
    return done(true);
  }
  const Moved moved = core->StateOf(result);
  if (moved.state == State::kEnded) return done(false);
  core->socket.async_wait(WaitOf(moved.state), [core, done = std::move(done)](Error error) mutable {
    if (error) return done(false);
    WhereMemoryAllows([&] { Shake(core, std::move(done)); });
  });
}

void ClientStream::ExpireAt(Clock::time_point time) {
  core_->deadline = time;
  // An alarm that comes earlier reads the current deadline itself.
  if (time < core_->alarm) SetAlarm(core_);
}

void ClientStream::SetAlarm(const std::shared_ptr<Core>& core) {
  core->alarm = core->deadline;
  core->timer.expires_at(core->alarm);
  core->timer.async_wait([weak = std::weak_ptr<Core>(core)](Error error) {
    const std::shared_ptr<Core> held = weak.lock();
    if (error || held == nullptr) return;
    held->alarm = Clock::time_point::max();
    if (held->deadline <= Clock::now()) return held->Abort();
    if (held->deadline != Clock::time_point::max()) SetAlarm(held);
  });
}

void ClientStream::Watch(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher) {
  core_->socket.async_wait(Socket::wait_read, [self, watcher](Error error) {
    const std::shared_ptr<ClientStream> stream = self.lock();
    if (stream == nullptr) return;
    const std::shared_ptr<ClientWatcher> told = watcher.lock();
    if (told == nullptr) return;
    char byte;
    const int socket = stream->core_->socket.native_handle();
    if (!error && recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) {
      return stream->Poll(self, watcher);
    }
    told->OnClientLeft();
  });
}

void ClientStream::Poll(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher) {
  if (HasLeft()) {
    if (const std::shared_ptr<ClientWatcher> told = watcher.lock()) told->OnClientLeft();
    return;
  }
  if (!core_->poll.has_value()) core_->poll.emplace(get_executor());
  core_->poll->expires_after(kPollTime);
  core_->poll->async_wait([self, watcher](Error error) {
    const std::shared_ptr<ClientStream> stream = self.lock();
    if (!error && stream != nullptr && !watcher.expired()) stream->Poll(self, watcher);
  });
}

bool ClientStream::HasLeft() const {
  pollfd client = {.fd = core_->socket.native_handle(), .events = POLLRDHUP};
  return poll(&client, 1, 0) > 0;
}

void ClientStream::CloseSending() {
  if (core_->session != nullptr) {
    ERR_clear_error();
    SSL_shutdown(core_->session.get());
  }
  Error ignored;
  core_->socket.shutdown(Socket::shutdown_send, ignored);
}

void ClientStream::Core::Abort() { shutdown(socket.native_handle(), SHUT_RDWR); }

}  // namespace reprise
