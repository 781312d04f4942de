// ZeroMQ's protocol on a connection (ZMTP 3.0, without security): its greeting, and its frames.
//
// Threads: pure; a reader by one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

inline constexpr size_t kZmtpGreetingBytes = 64;

// Returns the 64 bytes that both sides begin with.
std::string ZmtpGreeting();
// INVALID_ARGUMENT where a peer's 64 bytes are of an older protocol, of none, or want security.
absl::Status CheckZmtpGreeting(absl::string_view greeting);

struct ZmtpFrame {
  static constexpr uint8_t kMore = 1, kLong = 2, kCommand = 4;

  uint8_t flags = 0;
  std::string body;

  bool is_command() const { return (flags & kCommand) != 0; }
};

void AppendZmtpFrame(uint8_t flags, absl::string_view body, std::string& out);
// Appends the command by which a publisher says that it is ready.
void AppendZmtpReady(std::string& out);
// Returns the type of socket that a body of the command READY names; "" where it is another
// command, or names none.
std::string ZmtpSocketType(absl::string_view command);

// A request of a subscriber.
struct ZmtpAsk {
  enum class Kind { kNothing, kSubscribe, kCancel, kPing };
  Kind kind = Kind::kNothing;
  std::string text;  // the beginning of topics; of a ping, the words to send back
};
ZmtpAsk ReadZmtpAsk(const ZmtpFrame& frame);
// Appends the answer to a ping.
void AppendZmtpPong(absl::string_view words, std::string& out);

// Bytes of a peer -> frames.
class ZmtpReader {
 public:
  // Larger frames are refused: subscribers send names of topics.
  static constexpr size_t kMostBytes = 4096;

  void Append(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }
  // Returns the next whole frame; nullopt: its end has not come. INVALID_ARGUMENT: it is too large.
  absl::StatusOr<std::optional<ZmtpFrame>> Next();

 private:
  std::string buffer_;
};

}  // namespace reprise
