#include "runtime/bucket/axis_sizes.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace reprise {

absl::StatusOr<AxisSizes> ParseAxisSizes(absl::string_view text) {
  AxisSizes sizes;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::string axis(absl::StripAsciiWhitespace(sides[0]));
    int64_t size = 0;
    if (axis.empty() || sides.size() < 2 || !absl::SimpleAtoi(sides[1], &size) || size < 1) {
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' is not of the form AXIS=SIZE"));
    }
    if (!sizes.emplace(axis, size).second) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' has two sizes for ", axis));
    }
  }
  return sizes;
}

}  // namespace reprise
