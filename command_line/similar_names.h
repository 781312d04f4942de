// Names that differ in their numbers alone, as those of a decoder's layers do: one stands for all.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise::command_line {

// Returns a name with '#' in place of each number.
std::string PatternOf(absl::string_view name);

// The items of a list of which one stands for `count`.
struct SimilarGroup {
  size_t first = 0;  // its place in the list
  size_t count = 0;
};

// Groups items of equal `keys`, in the order of the first of each.
std::vector<SimilarGroup> GroupEqual(absl::Span<const std::string> keys);

// Returns "a, past.0.key and 29 more of this kind, b".
std::string JoinSimilar(absl::Span<const std::string> names);

}  // namespace reprise::command_line
