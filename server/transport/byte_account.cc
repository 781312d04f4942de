#include "server/transport/byte_account.h"

#include "absl/strings/str_cat.h"

namespace reprise {

absl::Status ConnectionBytes::Take(int64_t bytes) {
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
  int64_t most = all_->most.load(std::memory_order_relaxed);
  while (all > most && !all_->most.compare_exchange_weak(most, all, std::memory_order_relaxed)) {
  }
  return absl::OkStatus();
}

void ConnectionBytes::Give(int64_t bytes) {
  used_.fetch_sub(bytes);
  all_->used.fetch_sub(bytes);
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
