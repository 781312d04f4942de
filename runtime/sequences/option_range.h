// InRange: the check of one parameter of a generation against its limits.
//
// Threads: pure.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Returns INVALID_ARGUMENT unless `value` of parameter `name` is in [low, high].
template <class T>
absl::Status InRange(absl::string_view name, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("parameter '", name, "' = ", value, " is out of range [", low, ", ", high, "]"));
}

}  // namespace reprise
