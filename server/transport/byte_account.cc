#include "server/transport/byte_account.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/spare_heap.h"

namespace reprise {
namespace {

// The memory of a connection besides its bytes, roughly, and how much is worth giving back.
constexpr int64_t kConnectionBytes = 32 << 10;
constexpr int64_t kMuchBytes = 8 << 20;

void RaiseTo(int64_t value, std::atomic<int64_t>& most) {
  int64_t known = most.load(std::memory_order_relaxed);
  while (value > known && !most.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

ConnectionBytes::ConnectionBytes(const ByteLimits& limits, std::shared_ptr<ByteTotals> all)
    : limits_(limits), all_(std::move(all)) {
  RaiseTo(++all_->connections, all_->most_connections);
}

absl::Status ConnectionBytes::Take(int64_t bytes) {
  if (SpareHeapIsLow()) [[unlikely]] {
    return absl::ResourceExhaustedError(
        "the system has no memory left, and what runs already needs what was kept back");
  }
  const int64_t own = used_.fetch_add(bytes) + bytes;
  if (limits_.max_connection_bytes > 0 && own > limits_.max_connection_bytes) {
    used_.fetch_sub(bytes);
    return absl::ResourceExhaustedError(absl::StrCat(
        bytes, " more bytes: requests and answers of this connection hold ", own - bytes,
        " bytes, and a connection may hold ", limits_.max_connection_bytes));
  }
  const int64_t all = all_->used.fetch_add(bytes) + bytes;
  if (limits_.max_bytes > 0 && all > limits_.max_bytes) {
    all_->used.fetch_sub(bytes);
    used_.fetch_sub(bytes);
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " more bytes: requests and answers in flight hold ", all - bytes,
                     " bytes, and all together may hold ", limits_.max_bytes));
  }
  RaiseTo(all, all_->most);
  return absl::OkStatus();
}

void ConnectionBytes::Give(int64_t bytes) {
  used_.fetch_sub(bytes);
  all_->used.fetch_sub(bytes);
}

int64_t ByteAccount::CountFalls() const {
  const int64_t most = all_->most + all_->most_connections * kConnectionBytes;
  if (most >= kMuchBytes && used() + connections() * kConnectionBytes <= most / 2) {
    all_->most = used();
    all_->most_connections = connections();
    ++all_->falls;
  }
  return all_->falls;
}

absl::Status HeldBytes::Resize(int64_t bytes) {
  if (account_ != nullptr) {
    if (bytes > bytes_) {
      if (absl::Status taken = account_->Take(bytes - bytes_); !taken.ok()) return taken;
    } else if (bytes < bytes_) {
      account_->Give(bytes_ - bytes);
    }
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

}  // namespace reprise
