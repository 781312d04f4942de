#include "runtime/ops/kit/precision_goal.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace reprise {

absl::StatusOr<PrecisionGoal> PrecisionGoal::Parse(absl::string_view text) {
  const size_t colon = text.find(':');
  const absl::string_view word = text.substr(0, colon);
  PrecisionGoal goal = {.fast = word == "fast"};
  const bool has_bound = colon != absl::string_view::npos;
  if (!goal.fast && (word != "auto" || !has_bound)) {
    return absl::InvalidArgumentError(
        "must be exact, bf16, int8, auto:COSINE, fast or fast:COSINE");
  }
  if (!has_bound) return goal;
  const absl::string_view bound = text.substr(colon + 1);
  const bool is_cosine = absl::SimpleAtod(bound, &goal.cosine) && std::isfinite(goal.cosine) &&
                         goal.cosine > 0 && goal.cosine < 1;
  if (is_cosine) return goal;
  return absl::InvalidArgumentError(absl::StrCat(
      "has the bound \"", bound, "\": a cosine must be above 0 and below 1, such as 0.9995"));
}

std::string PrecisionGoal::ToString() const {
  return absl::StrCat(fast ? "fast:" : "auto:", cosine);
}

}  // namespace reprise
