#include "runtime/bucket/size_range.h"

#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace reprise {

std::string SizeRange::Text() const {
  std::string text = most == kLargestSize ? absl::StrCat("at least ", least)
                     : least == 1         ? absl::StrCat("at most ", most)
                                          : absl::StrCat(least, " to ", most);
  if (multiple > 1) absl::StrAppend(&text, " in multiples of ", multiple);
  return text;
}

std::vector<int64_t> SizeRange::Cut(const std::vector<int64_t>& sizes) const {
  std::set<int64_t> cut;
  for (const int64_t size : sizes) {
    const int64_t rounded = (size + multiple - 1) / multiple * multiple;
    if (rounded >= First() && rounded <= Last()) cut.insert(rounded);
  }
  if (most != kLargestSize || cut.empty()) cut.insert(most == kLargestSize ? First() : Last());
  if (usual.has_value()) cut.insert(*usual);
  return {cut.begin(), cut.end()};
}

absl::StatusOr<SizeRange> ParseSizeRange(absl::string_view text) {
  std::map<std::string, int64_t> parts;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    part = absl::StripAsciiWhitespace(part);
    const std::vector<std::string> words = absl::StrSplit(part, ' ', absl::SkipWhitespace());
    int64_t size = 0;
    const bool known = words.size() == 2 && (words[0] == "min" || words[0] == "max" ||
                                             words[0] == "multiple" || words[0] == "usual");
    if (!known || !absl::SimpleAtoi(words[1], &size) || size < 1 || size > kLargestSize) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is not min, max, multiple or usual with a size from 1 to ",
                       kLargestSize, "; write for example min 8, max 512, multiple 8, usual 128"));
    }
    if (!parts.emplace(words[0], size).second) {
      return absl::InvalidArgumentError(absl::StrCat("has ", words[0], " twice"));
    }
  }
  SizeRange range;
  if (parts.contains("min")) range.least = parts["min"];
  if (parts.contains("max")) range.most = parts["max"];
  if (parts.contains("multiple")) range.multiple = parts["multiple"];
  if (parts.contains("usual")) range.usual = parts["usual"];
  if (range.least > range.most) {
    return absl::InvalidArgumentError(
        absl::StrCat("has min ", range.least, ", which is above max ", range.most));
  }
  if (range.First() > range.most) {
    return absl::InvalidArgumentError(absl::StrCat("has no multiple of ", range.multiple, " from ",
                                                   range.least, " to ", range.most));
  }
  if (range.usual.has_value() && !range.Allows(*range.usual)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has usual ", *range.usual, ", but allows ", range.Text()));
  }
  return range;
}

}  // namespace reprise
