#include "runtime/base/nearest_name.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

// Longer names are not typing errors.
constexpr size_t kMostBytes = 128;

// Returns the optimal string alignment distance.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(absl::string_view name, absl::Span<const std::string> known) {
  if (name.size() > kMostBytes) return "";
  size_t least = name.size() / 3 + 1;
  std::string nearest;
  for (const std::string& one : known) {
    if (one.size() > kMostBytes) continue;
    const size_t distance = Distance(name, one);
    if (distance == 0) return "";
    if (distance >= least) continue;
    least = distance;
    nearest = one;
  }
  return nearest;
}

std::string DidYouMean(absl::string_view name, absl::Span<const std::string> known) {
  const std::string nearest = NearestName(name, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace reprise
