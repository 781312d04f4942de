// NearestName: the known name that a user has probably meant.
//
// Threads: pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

// Returns the name of `known` that takes the fewest changes of one character (one more, one less,
// another one, two swapped) from `name`, where these are at most a third of its length; "" where
// none is so near, and where `name` is known.
std::string NearestName(absl::string_view name, absl::Span<const std::string> known);

// Returns "; did you mean NEAREST?", or "" where there is none.
std::string DidYouMean(absl::string_view name, absl::Span<const std::string> known);

}  // namespace reprise
