#include "server/speech/spoken_rules.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/status_macros.h"

namespace reprise {

absl::Status SpokenRules::Restrict(absl::Span<float> scores) {
  if (times_.has_value()) RETURN_IF_ERROR(times_->Restrict(scores));
  left_.assign(scores.begin(), scores.end());
  return absl::OkStatus();
}

absl::StatusOr<bool> SpokenRules::Take(int64_t id) {
  if (id >= 0 && id < std::ssize(left_)) {
    const float top = *std::max_element(left_.begin(), left_.end());
    double sum = 0;
    for (const float score : left_) sum += std::exp(static_cast<double>(score - top));
    *logprobs_ += left_[static_cast<size_t>(id)] - top - std::log(sum);
  }
  return times_.has_value() ? times_->Take(id) : false;
}

}  // namespace reprise
