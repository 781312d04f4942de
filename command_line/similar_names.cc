#include "command_line/similar_names.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace reprise::command_line {

std::string PatternOf(absl::string_view name) {
  std::string pattern;
  for (const char c : name) {
    if (!absl::ascii_isdigit(c)) {
      pattern += c;
    } else if (pattern.empty() || pattern.back() != '#') {
      pattern += '#';
    }
  }
  return pattern;
}

std::vector<SimilarGroup> GroupEqual(absl::Span<const std::string> keys) {
  std::vector<SimilarGroup> groups;
  std::map<absl::string_view, size_t> group_of;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto [at, added] = group_of.try_emplace(keys[i], groups.size());
    if (added) groups.push_back({.first = i});
    ++groups[at->second].count;
  }
  return groups;
}

std::string JoinSimilar(absl::Span<const std::string> names) {
  std::vector<std::string> patterns;
  for (const std::string& name : names) patterns.push_back(PatternOf(name));
  return absl::StrJoin(GroupEqual(patterns), ", ",
                       [&](std::string* out, const SimilarGroup& group) {
                         absl::StrAppend(out, names[group.first]);
                         if (group.count > 1)
                           absl::StrAppend(out, " and ", group.count - 1, " more of this kind");
                       });
}

}  // namespace reprise::command_line
