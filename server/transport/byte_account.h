// ByteAccount: the bytes that requests and answers in flight hold, whatever protocol they came by:
// of the daemon, and of each connection within it.
//
// The account grows as bytes come, not as clients announce them. A request that would pass a
// limit is refused at once, with the numbers; none waits for others to let go.
//
//   ByteAccount account({.max_bytes = 8 << 30, .max_connection_bytes = 4 << 30});
//   auto connection = account.Open();
//   HeldBytes body(connection);
//   RETURN_IF_ERROR(body.Resize(body_bytes));   // given back when `body` goes
//
// Threads: all methods of ByteAccount and ConnectionBytes from any; a HeldBytes from one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace reprise {

struct ByteLimits {
  int64_t max_bytes = 0;             // all connections together; 0: only counted
  int64_t max_connection_bytes = 0;  // one connection; 0: only the first limit counts
};

// The bytes of all connections together. `most` and `most_connections`: since the last fall.
struct ByteTotals {
  std::atomic<int64_t> used{0};
  std::atomic<int64_t> most{0};
  std::atomic<int64_t> connections{0};
  std::atomic<int64_t> most_connections{0};
  std::atomic<int64_t> falls{0};
};

// The part of the account that one connection holds.
class ConnectionBytes {
 public:
  ConnectionBytes(const ByteLimits& limits, std::shared_ptr<ByteTotals> all);
  ~ConnectionBytes() { --all_->connections; }
  ConnectionBytes(const ConnectionBytes&) = delete;
  ConnectionBytes& operator=(const ConnectionBytes&) = delete;

  // RESOURCE_EXHAUSTED, and nothing is taken, where a limit would be passed.
  absl::Status Take(int64_t bytes);
  void Give(int64_t bytes);
  int64_t used() const { return used_; }

 private:
  const ByteLimits limits_;
  const std::shared_ptr<ByteTotals> all_;
  std::atomic<int64_t> used_{0};
};

class ByteAccount {
 public:
  explicit ByteAccount(const ByteLimits& limits) : limits_(limits) {}

  // Returns the account of a new connection; may outlive this object.
  std::shared_ptr<ConnectionBytes> Open() const {
    return std::make_shared<ConnectionBytes>(limits_, all_);
  }
  int64_t used() const { return all_->used; }
  // Connections that are open.
  int64_t connections() const { return all_->connections; }
  // Returns how often the bytes of clients have fallen to a half or less of a large amount: each
  // time, the heap has memory for the system.
  int64_t CountFalls() const;
  const ByteLimits& limits() const { return limits_; }

 private:
  const ByteLimits limits_;
  const std::shared_ptr<ByteTotals> all_ = std::make_shared<ByteTotals>();
};

// Bytes that one thing holds: a body, a message, an answer.
class HeldBytes {
 public:
  HeldBytes() = default;
  explicit HeldBytes(std::shared_ptr<ConnectionBytes> account) : account_(std::move(account)) {}
  ~HeldBytes() { Release(); }
  HeldBytes(HeldBytes&& other) noexcept
      : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    if (this != &other) {
      Release();
      account_ = std::move(other.account_);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }

  // Holds `bytes` from now on. Only more than before can fail: then all is as it was.
  absl::Status Resize(int64_t bytes);
  void Release() {
    if (account_ != nullptr && bytes_ > 0) account_->Give(std::exchange(bytes_, 0));
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<ConnectionBytes> account_;  // null: nothing is counted
  int64_t bytes_ = 0;
};

}  // namespace reprise
