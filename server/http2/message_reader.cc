#include "server/http2/message_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

// Bytes that are held ready for a message that has been announced and has not come.
constexpr size_t kFirstBytes = 16 << 10;
// Beside its bytes a message takes its object, also where it is empty.
constexpr int64_t kMessageOverhead = 128;

}  // namespace

absl::Status MessageReader::Add(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (header_bytes_ < kHeaderBytes) {
      const size_t more = std::min(kHeaderBytes - header_bytes_, bytes.size());
      std::memcpy(header_ + header_bytes_, bytes.data(), more);
      header_bytes_ += more;
      bytes.remove_prefix(more);
      if (header_bytes_ < kHeaderBytes) return absl::OkStatus();
      if (absl::Status status = OnHeader(); !status.ok()) return status;
    }
    const size_t more = std::min(length_ - message_.bytes.size(), bytes.size());
    if (absl::Status status = Append(bytes.substr(0, more)); !status.ok()) return status;
    bytes.remove_prefix(more);
    if (message_.bytes.size() == length_) {
      whole_.push_back(std::move(message_));
      message_ = RpcMessage();
      header_bytes_ = 0;
    }
  }
  return absl::OkStatus();
}

absl::Status MessageReader::OnHeader() {
  if (header_[0] > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message begins with the flag ", header_[0], ", 0 and 1 are known"));
  }
  length_ = size_t{header_[1]} << 24 | size_t{header_[2]} << 16 | size_t{header_[3]} << 8 |
            size_t{header_[4]};
  if (length_ > static_cast<size_t>(max_bytes_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the message has ", length_, " bytes, a request at most ", max_bytes_));
  }
  message_.is_compressed = header_[0] == 1;
  message_.held = HeldBytes(account_);
  return message_.held.Resize(kMessageOverhead);
}

absl::Status MessageReader::Append(absl::string_view bytes) {
  std::string& to = message_.bytes;
  const size_t size = to.size() + bytes.size();
  if (size > to.capacity()) {
    const size_t room = std::min(length_, std::max({size, 2 * to.capacity(), kFirstBytes}));
    if (absl::Status held = message_.held.Resize(static_cast<int64_t>(room) + kMessageOverhead);
        !held.ok()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the message has ", length_, " bytes: ", held.message()));
    }
    to.reserve(room);
  }
  to.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

RpcMessage MessageReader::Take() {
  RpcMessage message = std::move(whole_.front());
  whole_.pop_front();
  return message;
}

}  // namespace reprise
