#include "runtime/ranks/rank_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr int kPollMs = 20;
// A message that follows soon is met without sleeping: waking costs more than several launches.
constexpr std::chrono::microseconds kSpin{300};

absl::Status Gone() { return absl::UnavailableError("the connection has ended"); }

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<sockaddr_un> PathAddress(const std::string& path) {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path '", path, "' has ", path.size(),
                                                   " bytes; a socket's has at most ",
                                                   sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Calls `use` with each address of host and port until it returns a socket.
template <class Use>
absl::StatusOr<RankSocket> EachAddress(const RankAddress& address, bool listens, Use use) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listens ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat(address.Text(), ": ", gai_strerror(error)));
  }
  absl::Status status = absl::UnavailableError(absl::StrCat(address.Text(), " has no address"));
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    // A connection may be gone before it is accepted.
    const int type = SOCK_STREAM | SOCK_CLOEXEC | (listens ? SOCK_NONBLOCK : 0);
    RankSocket socket(::socket(one->ai_family, type, 0));
    if (socket.is_open() && use(socket, one->ai_addr, one->ai_addrlen)) {
      freeaddrinfo(found);
      return socket;
    }
    status = SystemError(address.Text());
  }
  freeaddrinfo(found);
  return status;
}

void SendAtOnce(const RankSocket& socket) {
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

RankSocket& RankSocket::operator=(RankSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RankSocket::~RankSocket() {
  if (fd_ >= 0) close(fd_);
}

void RankSocket::Shutdown() {
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

ssize_t RankSocket::TrySend(const void* bytes, size_t count) {
  const ssize_t sent = send(fd_, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

ssize_t RankSocket::TryReceive(void* bytes, size_t count) {
  const ssize_t received = recv(fd_, bytes, count, MSG_DONTWAIT);
  if (received > 0) return received;
  if (received == 0) return -1;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

void RankSocket::Wait(bool to_read, bool to_write) const {
  const int events = (to_read ? POLLIN : 0) | (to_write ? POLLOUT : 0);
  pollfd one = {fd_, static_cast<int16_t>(events), 0};
  poll(&one, 1, kPollMs);
}

absl::Status RankSocket::Send(const void* bytes, size_t count, const Ends& ends) {
  const auto* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = TrySend(next, count);
    if (sent < 0) return Gone();
    next += sent;
    count -= static_cast<size_t>(sent);
    if (sent > 0) continue;
    if (ends()) return absl::CancelledError("the wait was ended");
    Wait(/*to_read=*/false, /*to_write=*/true);
  }
  return absl::OkStatus();
}

absl::Status RankSocket::Await(const Ends& ends) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    char byte = 0;
    const ssize_t seen = recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    if (seen > 0) return absl::OkStatus();
    if (seen == 0 || (errno != EAGAIN && errno != EINTR)) return Gone();
    if (std::chrono::steady_clock::now() - begin < kSpin) continue;
    if (ends()) return absl::CancelledError("the wait was ended");
    Wait(/*to_read=*/true, /*to_write=*/false);
  }
}

absl::Status RankSocket::Receive(void* bytes, size_t count, const Ends& ends) {
  auto* next = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t received = TryReceive(next, count);
    if (received < 0) return Gone();
    next += received;
    count -= static_cast<size_t>(received);
    if (received > 0) continue;
    if (ends()) return absl::CancelledError("the wait was ended");
    Wait(/*to_read=*/true, /*to_write=*/false);
  }
  return absl::OkStatus();
}

absl::Status RankSocket::SendFrame(absl::string_view bytes, const Ends& ends) {
  const auto size = static_cast<uint32_t>(bytes.size());
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(size >> shift);
  frame.append(bytes.data(), bytes.size());
  return Send(frame.data(), frame.size(), ends);
}

absl::StatusOr<std::string> RankSocket::ReceiveFrame(size_t most, const Ends& ends) {
  unsigned char head[4];
  RETURN_IF_ERROR(Receive(head, sizeof(head), ends));
  size_t size = 0;
  for (size_t i = 0; i < sizeof(head); ++i) size |= size_t{head[i]} << (8 * i);
  if (size > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message of ", size, " bytes; at most ", most, " are taken"));
  }
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(Receive(bytes.data(), size, ends));
  return bytes;
}

absl::Status RankSocket::SendFile(int file) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &file, sizeof(int));
  return sendmsg(fd_, &message, MSG_NOSIGNAL) == 1 ? absl::OkStatus() : SystemError("sendmsg");
}

absl::StatusOr<int> RankSocket::ReceiveFile(const Ends& ends) {
  for (;;) {
    char byte = 0;
    iovec part = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t received = recvmsg(fd_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received == 1) {
      const cmsghdr* const head = CMSG_FIRSTHDR(&message);
      if (head == nullptr || head->cmsg_type != SCM_RIGHTS) {
        return absl::UnavailableError("no file came");
      }
      int file = -1;
      std::memcpy(&file, CMSG_DATA(head), sizeof(int));
      return file;
    }
    if (received == 0 || (errno != EAGAIN && errno != EINTR)) return Gone();
    if (ends()) return absl::CancelledError("the wait was ended");
    Wait(/*to_read=*/true, /*to_write=*/false);
  }
}

std::string RankAddress::Text() const {
  if (is_local()) return absl::StrCat("unix:", path);
  const bool is_v6 = host.find(':') != std::string::npos;
  return absl::StrCat(is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", port);
}

absl::StatusOr<RankAddress> RankAddress::Parse(absl::string_view text) {
  constexpr absl::string_view kLocal = "unix:";
  if (text.substr(0, kLocal.size()) == kLocal && text.size() > kLocal.size()) {
    RankAddress address;
    address.path = std::string(text.substr(kLocal.size()));
    RETURN_IF_ERROR(PathAddress(address.path).status());
    return address;
  }
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon != absl::string_view::npos && colon > 0 &&
      absl::SimpleAtoi(text.substr(colon + 1), &port) && port >= 0 && port <= 65535) {
    absl::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    RankAddress address;
    address.host = std::string(host);
    address.port = absl::StrCat(port);
    return address;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is neither unix:PATH nor HOST:PORT"));
}

absl::StatusOr<RankSocket> Listen(const RankAddress& address) {
  constexpr int kWaiting = 64;
  if (!address.is_local()) {
    return EachAddress(
        address, /*listens=*/true, [](RankSocket& socket, const sockaddr* at, socklen_t size) {
          const int on = 1;
          setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
          return bind(socket.fd(), at, size) == 0 && listen(socket.fd(), kWaiting) == 0;
        });
  }
  ASSIGN_OR_RETURN(const sockaddr_un at, PathAddress(address.path));
  if (Connect(address).ok()) {
    return absl::UnavailableError(absl::StrCat("another process listens at ", address.Text()));
  }
  unlink(address.path.c_str());
  RankSocket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Nobody else's processes may join: the path is made for its owner alone.
  const mode_t before = umask(0177);
  const bool bound = socket.is_open() &&
                     bind(socket.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
  umask(before);
  if (!bound || listen(socket.fd(), kWaiting) != 0) return SystemError(address.Text());
  return socket;
}

int PortOf(const RankSocket& listener) {
  sockaddr_storage at = {};
  socklen_t size = sizeof(at);
  if (getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&at), &size) != 0) return 0;
  if (at.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&at)->sin_port);
  if (at.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&at)->sin6_port);
  return 0;
}

absl::StatusOr<RankSocket> Connect(const RankAddress& address) {
  if (!address.is_local()) {
    ASSIGN_OR_RETURN(RankSocket socket,
                     EachAddress(address, /*listens=*/false,
                                 [](RankSocket& one, const sockaddr* at, socklen_t size) {
                                   // A host that does not answer is not waited for.
                                   const timeval most = {.tv_sec = 1, .tv_usec = 0};
                                   setsockopt(one.fd(), SOL_SOCKET, SO_SNDTIMEO, &most,
                                              sizeof(most));
                                   return connect(one.fd(), at, size) == 0;
                                 }));
    SendAtOnce(socket);
    return socket;
  }
  ASSIGN_OR_RETURN(const sockaddr_un at, PathAddress(address.path));
  RankSocket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() ||
      connect(socket.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0) {
    return SystemError(address.Text());
  }
  return socket;
}

RankSocket Accept(const RankSocket& listener) {
  listener.Wait(/*to_read=*/true, /*to_write=*/false);
  RankSocket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.is_open()) SendAtOnce(socket);
  return socket;
}

}  // namespace reprise
