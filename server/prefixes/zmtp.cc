#include "server/prefixes/zmtp.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace reprise {
namespace {

// Positions in the greeting: the end of the signature, the version, the mechanism.
constexpr size_t kSignatureEnd = 9, kVersion = 10, kMechanism = 12, kMechanismBytes = 20;
constexpr absl::string_view kNoSecurity("NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", kMechanismBytes);
constexpr absl::string_view kReady("\5READY");
constexpr absl::string_view kSocketType("\13Socket-Type");

uint64_t BigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

std::string ZmtpGreeting() {
  std::string greeting(kZmtpGreetingBytes, '\0');
  greeting[0] = '\xff';
  greeting[kSignatureEnd] = '\x7f';
  greeting[kVersion] = 3;
  greeting.replace(kMechanism, kMechanismBytes, kNoSecurity.data(), kMechanismBytes);
  return greeting;
}

absl::Status CheckZmtpGreeting(absl::string_view greeting) {
  if (greeting.size() != kZmtpGreetingBytes || greeting[0] != '\xff' ||
      (greeting[kSignatureEnd] & 1) == 0 || greeting[kVersion] < 3) {
    return absl::InvalidArgumentError("the peer does not speak ZMTP 3");
  }
  if (greeting.substr(kMechanism, kMechanismBytes) != kNoSecurity) {
    return absl::InvalidArgumentError("the peer wants a security mechanism");
  }
  return absl::OkStatus();
}

void AppendZmtpFrame(uint8_t flags, absl::string_view body, std::string& out) {
  const bool is_long = body.size() > 255;
  out += static_cast<char>(flags | (is_long ? ZmtpFrame::kLong : 0));
  for (int i = is_long ? 7 : 0; i >= 0; --i) {
    out += static_cast<char>(static_cast<uint64_t>(body.size()) >> (8 * i));
  }
  out.append(body.data(), body.size());
}

void AppendZmtpReady(std::string& out) {
  std::string body = absl::StrCat(kReady, kSocketType);
  body.append("\0\0\0\3PUB", 7);
  AppendZmtpFrame(ZmtpFrame::kCommand, body, out);
}

std::string ZmtpSocketType(absl::string_view command) {
  if (!absl::ConsumePrefix(&command, kReady)) return "";
  while (!command.empty()) {
    const size_t name = 1 + static_cast<uint8_t>(command[0]);
    if (command.size() < name + 4) return "";
    const uint64_t size = BigEndian(command.substr(name, 4));
    if (command.size() - name - 4 < size) return "";
    if (absl::EqualsIgnoreCase(command.substr(0, name), kSocketType)) {
      return std::string(command.substr(name + 4, size));
    }
    command.remove_prefix(name + 4 + size);
  }
  return "";
}

ZmtpAsk ReadZmtpAsk(const ZmtpFrame& frame) {
  absl::string_view body = frame.body;
  if (!frame.is_command()) {
    if (body.empty() || body[0] < 0 || body[0] > 1) return {};
    return {.kind = body[0] == 1 ? ZmtpAsk::Kind::kSubscribe : ZmtpAsk::Kind::kCancel,
            .text = std::string(body.substr(1))};
  }
  // ZMTP 3.1 has commands in the place of such messages.
  if (absl::ConsumePrefix(&body, "\11SUBSCRIBE")) {
    return {.kind = ZmtpAsk::Kind::kSubscribe, .text = std::string(body)};
  }
  if (absl::ConsumePrefix(&body, "\6CANCEL")) {
    return {.kind = ZmtpAsk::Kind::kCancel, .text = std::string(body)};
  }
  // After a time to live in two bytes.
  if (absl::ConsumePrefix(&body, "\4PING") && body.size() >= 2) {
    return {.kind = ZmtpAsk::Kind::kPing, .text = std::string(body.substr(2))};
  }
  return {};
}

void AppendZmtpPong(absl::string_view words, std::string& out) {
  AppendZmtpFrame(ZmtpFrame::kCommand, absl::StrCat("\4PONG", words), out);
}

absl::StatusOr<std::optional<ZmtpFrame>> ZmtpReader::Next() {
  if (buffer_.empty()) return std::nullopt;
  const auto flags = static_cast<uint8_t>(buffer_[0]);
  const size_t head = (flags & ZmtpFrame::kLong) != 0 ? 9 : 2;
  if (buffer_.size() < head) return std::nullopt;
  const uint64_t size = BigEndian(absl::string_view(buffer_).substr(1, head - 1));
  if (size > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame has ", size, " bytes, the limit is ", kMostBytes));
  }
  if (buffer_.size() < head + size) return std::nullopt;
  ZmtpFrame frame = {.flags = flags, .body = buffer_.substr(head, size)};
  buffer_.erase(0, head + size);
  return frame;
}

}  // namespace reprise
