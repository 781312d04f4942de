#include "server/speech/time_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Forbids the ids [from, to).
void Forbid(absl::Span<float> scores, int64_t from, int64_t to) {
  const auto size = std::ssize(scores);
  for (int64_t id = std::max<int64_t>(from, 0); id < std::min<int64_t>(to, size); ++id) {
    scores[static_cast<size_t>(id)] = kNever;
  }
}

// Returns whether the tokens of `times` are together likelier than the likeliest of `texts`.
bool AreLikelier(absl::Span<const float> times, absl::Span<const float> texts) {
  if (times.empty() || texts.empty()) return false;
  const float top = *std::max_element(times.begin(), times.end());
  if (top == kNever) return false;
  double sum = 0;
  for (const float score : times) sum += std::exp(static_cast<double>(score - top));
  return top + std::log(sum) > *std::max_element(texts.begin(), texts.end());
}

}  // namespace

absl::Status TimeRules::Restrict(absl::Span<float> scores) {
  const auto all = std::ssize(scores);
  Forbid(scores, no_times_, no_times_ + 1);
  if (count_ == 0) {
    Forbid(scores, 0, first_);
    if (most_initial_ >= 0) Forbid(scores, first_ + most_initial_ + 1, all);
  }
  if (last_is_time_) {
    // After a pair comes text, after a first half the second one or the end.
    const bool is_pair = count_ < 2 || one_before_is_time_;
    is_pair ? Forbid(scores, first_, all) : Forbid(scores, 0, end_);
  }
  if (latest_ >= 0) {
    const bool opens = last_is_time_ && !one_before_is_time_ && count_ >= 2;
    Forbid(scores, first_, latest_ + (opens ? 0 : 1));
  }
  const auto split = static_cast<size_t>(std::clamp<int64_t>(first_, 0, all));
  if (AreLikelier(scores.subspan(split), scores.subspan(0, split))) Forbid(scores, 0, first_);
  return absl::OkStatus();
}

absl::StatusOr<bool> TimeRules::Take(int64_t id) {
  one_before_is_time_ = last_is_time_;
  last_is_time_ = IsTime(id);
  if (last_is_time_) latest_ = id;
  ++count_;
  return false;
}

}  // namespace reprise
