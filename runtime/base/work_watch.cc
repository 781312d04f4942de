#include "runtime/base/work_watch.h"

#include <algorithm>
#include <cstdint>

namespace reprise {

void WorkWatch::Look() {
  left_ = kStepsPerLook;
  if (!Ends()) return;
  ended_ = true;
  throw WorkEnded();
}

void WorkWatch::TakeBytes(size_t bytes) {
  if (max_bytes_ == 0) return;
  const auto wanted = static_cast<int64_t>(std::min(bytes, size_t{1} << 62));
  if (wanted > max_bytes_ - bytes_) {
    ended_ = true;
    OnTooMuch(wanted > INT64_MAX - bytes_ ? INT64_MAX : bytes_ + wanted);
    throw WorkEnded();
  }
  bytes_ += wanted;
}

// A block may be older than the watch.
void WorkWatch::GiveBytes(size_t bytes) noexcept {
  bytes_ = std::max<int64_t>(bytes_ - static_cast<int64_t>(bytes), 0);
}

}  // namespace reprise
