// RankSocket: a connected socket between two ranks, of TCP or of a path on this host.
//
// A frame is its length in four bytes, low byte first, and its bytes. Calls that wait ask every few
// milliseconds whether to go on.
//
// Threads: one sends and one receives at a time. Errors: UNAVAILABLE where the other side is gone,
// CANCELLED where the wait was ended.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

class RankSocket {
 public:
  // Asked while a call waits; true ends it.
  using Ends = std::function<bool()>;

  RankSocket() = default;
  explicit RankSocket(int fd) : fd_(fd) {}
  RankSocket(RankSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RankSocket& operator=(RankSocket&& other) noexcept;
  ~RankSocket();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Ends all calls on both sides. The descriptor stays until the destructor.
  void Shutdown();

  absl::Status Send(const void* bytes, size_t count, const Ends& ends);
  absl::Status Receive(void* bytes, size_t count, const Ends& ends);
  // Returns when there is something to receive. Looks at the socket for some time before it sleeps.
  absl::Status Await(const Ends& ends);
  absl::Status SendFrame(absl::string_view bytes, const Ends& ends);
  // RESOURCE_EXHAUSTED where the frame is longer than `most`.
  absl::StatusOr<std::string> ReceiveFrame(size_t most, const Ends& ends);

  // Sends or receives an open file; of sockets on one host.
  absl::Status SendFile(int file);
  absl::StatusOr<int> ReceiveFile(const Ends& ends);

  // Sends or receives as much as is possible at once; -1: the other side is gone.
  ssize_t TrySend(const void* bytes, size_t count);
  ssize_t TryReceive(void* bytes, size_t count);
  // Waits until the socket can be read or written, for a few milliseconds at most.
  void Wait(bool to_read, bool to_write) const;

 private:
  int fd_ = -1;
};

// Where ranks meet: "unix:PATH" or "HOST:PORT".
struct RankAddress {
  std::string path;        // a socket on this host; empty: host and port
  std::string host, port;  // an IPv6 address without brackets

  bool is_local() const { return !path.empty(); }
  std::string Text() const;
  // INVALID_ARGUMENT where `text` is neither.
  static absl::StatusOr<RankAddress> Parse(absl::string_view text);
};

// Returns a listening socket. A path without a listener is replaced.
absl::StatusOr<RankSocket> Listen(const RankAddress& address);
// Returns the port that a socket of TCP listens at; 0 for others.
int PortOf(const RankSocket& listener);
// Returns a connection, or UNAVAILABLE.
absl::StatusOr<RankSocket> Connect(const RankAddress& address);
// Returns a connection that has come, or a closed socket after a few milliseconds without one.
RankSocket Accept(const RankSocket& listener);

}  // namespace reprise
