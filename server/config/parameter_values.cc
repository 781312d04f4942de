#include "server/config/parameter_values.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::Status WantInteger(absl::string_view value, int64_t least, int64_t most, int64_t& target) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < least || number > most) {
    return absl::InvalidArgumentError(
        most == kMostInteger ? absl::StrCat("must be an integer of at least ", least)
                             : absl::StrCat("must be an integer from ", least, " to ", most));
  }
  target = number;
  return absl::OkStatus();
}

absl::Status WantMegabytes(absl::string_view value, int64_t least, int64_t& bytes) {
  RETURN_IF_ERROR(WantInteger(value, least, kMostInteger >> 20, bytes));
  bytes <<= 20;
  return absl::OkStatus();
}

absl::Status WantWord(absl::string_view value, absl::Span<const absl::string_view> words) {
  if (absl::c_linear_search(words, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "must be ", absl::StrJoin(words.first(words.size() - 1), ", "), " or ", words.back()));
}

absl::Status ReadNames(absl::string_view value, std::vector<std::string>& names) {
  for (absl::string_view name : absl::StrSplit(value, ',')) {
    name = absl::StripAsciiWhitespace(name);
    if (name.empty()) return absl::InvalidArgumentError("must be a list of names");
    names.emplace_back(name);
  }
  return absl::OkStatus();
}

absl::Status ReadCpus(absl::string_view value, std::vector<int>& cpus) {
  constexpr int64_t kMostCpus = 1024;
  std::set<int> found;
  for (absl::string_view part : absl::StrSplit(value, ',')) {
    part = absl::StripAsciiWhitespace(part);
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int64_t first = 0, last = 0;
    const bool is_range = absl::StrContains(part, '-');
    const bool read = absl::SimpleAtoi(ends.first, &first) &&
                      absl::SimpleAtoi(is_range ? ends.second : ends.first, &last);
    if (!read || first < 0 || last < first || last >= kMostCpus) {
      return absl::InvalidArgumentError("must be numbers of CPUs, such as 0-3 or 0,2,4-5");
    }
    for (int64_t cpu = first; cpu <= last; ++cpu) found.insert(static_cast<int>(cpu));
  }
  cpus.assign(found.begin(), found.end());
  return absl::OkStatus();
}

}  // namespace reprise
