// MessageReader: the bytes of a stream -> messages of gRPC: a flag, a length of four bytes, and the
// message itself.
//
// Memory grows as bytes come, not as a client announces them, and is on the connection's account.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/transport/byte_account.h"

namespace reprise {

struct RpcMessage {
  std::string bytes;
  bool is_compressed = false;
  HeldBytes held;  // the memory of the message, until it is released
};

class MessageReader {
 public:
  MessageReader(int64_t max_bytes, std::shared_ptr<ConnectionBytes> account)
      : max_bytes_(max_bytes), account_(std::move(account)) {}

  // Errors: RESOURCE_EXHAUSTED for a message that is too long or for which the account has no room,
  // INVALID_ARGUMENT for a flag that gRPC does not have. Nothing is read after an error.
  absl::Status Add(absl::string_view bytes);

  bool HasMessage() const { return !whole_.empty(); }
  // Returns the oldest message that is whole; there is one.
  RpcMessage Take();
  // Returns whether a message has begun and is not whole.
  bool IsInside() const { return header_bytes_ > 0; }
  int64_t max_bytes() const { return max_bytes_; }

 private:
  static constexpr size_t kHeaderBytes = 5;

  absl::Status OnHeader();
  absl::Status Append(absl::string_view bytes);

  const int64_t max_bytes_;
  const std::shared_ptr<ConnectionBytes> account_;
  std::list<RpcMessage> whole_;
  // The message that is being read.
  unsigned char header_[kHeaderBytes] = {};
  size_t header_bytes_ = 0;
  size_t length_ = 0;
  RpcMessage message_;
};

}  // namespace reprise
