#include "runtime/engine/types/run_control.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::Status RunControl::Ended(absl::string_view label) const {
  constexpr int64_t kMillisecond = 1'000'000;
  if (stopped()) {
    return absl::CancelledError(absl::StrCat(label, ": no client waits for the request any more"));
  }
  if (too_much_bytes_ > 0 && !IsOverdue()) {
    return RefuseBytes(too_much_bytes_, absl::StrCat(label, ": it needs ", too_much_bytes_.load(),
                                                     " bytes besides its operands, and ",
                                                     LimitName(), " leaves ", BytesForOneNode()));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      label, ": the request has computed for ", taken_ns() / kMillisecond, " ms, the limit is ",
      limits_.max_ns / kMillisecond, " (reprise.max_request_ms)"));
}

int64_t RunControl::BytesLeft(int64_t most) const {
  if (limits_.max_bytes > 0) most = std::clamp<int64_t>(limits_.max_bytes - *made_bytes_, 0, most);
  return limits_.all == nullptr ? most : std::min(most, limits_.all->left());
}

absl::Status RunControl::RefuseBytes(int64_t bytes, absl::string_view why) const {
  const int64_t wanted = *made_bytes_ + bytes;
  const bool never =
      (limits_.max_bytes > 0 && wanted > limits_.max_bytes) ||
      (limits_.all != nullptr && limits_.all->max_bytes() > 0 && wanted > limits_.all->max_bytes());
  return never ? absl::InvalidArgumentError(why) : absl::ResourceExhaustedError(why);
}

const char* RunControl::LimitName() const {
  const int64_t own = limits_.max_bytes - *made_bytes_;
  const bool is_own =
      limits_.all == nullptr || (limits_.max_bytes > 0 && own < limits_.all->left());
  return is_own ? "reprise.max_request_mb" : "--data-memory-mb";
}

int64_t RunControl::BytesForOneNode() const {
  // Where nothing is left nothing is made, either, since the watch's 0 means no limit.
  return limits_.max_bytes == 0 && limits_.all == nullptr
             ? 0
             : std::max<int64_t>(BytesLeft(std::numeric_limits<int64_t>::max()), 1);
}

absl::Status RunControl::Admit(int64_t bytes, absl::string_view what) const {
  if (bytes <= BytesLeft(std::numeric_limits<int64_t>::max())) return absl::OkStatus();
  const std::string taken = absl::StrCat(what, " takes ", bytes, " bytes besides ",
                                         made_bytes_->load(), " that the request has made, ");
  if (limits_.max_bytes > 0 && bytes > limits_.max_bytes - *made_bytes_) {
    return RefuseBytes(bytes, absl::StrCat(taken, "the limit is ", limits_.max_bytes,
                                           " (reprise.max_request_mb)"));
  }
  return RefuseBytes(
      bytes, absl::StrCat(taken, "all requests have made ", limits_.all->used(),
                          ", their limit is ", limits_.all->max_bytes(), " (--data-memory-mb)"));
}

absl::StatusOr<Tensor> RunControl::Keep(Tensor made, absl::string_view what) {
  const auto bytes = static_cast<int64_t>(made.bytes());
  if (bytes == 0 || (limits_.max_bytes == 0 && limits_.all == nullptr)) return made;
  if (limits_.all != nullptr && !limits_.all->Take(bytes)) {
    RETURN_IF_ERROR(Admit(bytes, what));
    // Other runs took memory meanwhile: these bytes exist already, and exceed the limit for a
    // moment at most.
    limits_.all->Add(bytes);
  }
  const void* const data = made.data();
  const DType dtype = made.dtype();
  Shape shape = made.shape();
  *made_bytes_ += bytes;
  most_bytes_ = std::max<int64_t>(most_bytes_, *made_bytes_);
  // Where memory runs out, the pointer calls this at once.
  const auto give_back = [account = made_bytes_, all = limits_.all, bytes,
                          kept = std::move(made)](const void*) {
    *account -= bytes;
    if (all != nullptr) all->Give(bytes);
  };
  return Tensor(dtype, std::move(shape), std::shared_ptr<const void>(data, give_back));
}

}  // namespace reprise
