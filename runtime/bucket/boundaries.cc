#include "runtime/bucket/boundaries.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  int64_t size = 0;
  if (!absl::SimpleAtoi(text, &size) || size < 1 || size > kLargestSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a size from 1 to ", kLargestSize));
  }
  return size;
}

absl::StatusOr<std::vector<int64_t>> ParseSizes(absl::string_view text) {
  std::vector<int64_t> sizes;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const int64_t size, ParseSize(part));
    if (!sizes.empty() && size <= sizes.back()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sizes must grow, but ", size, " follows ", sizes.back()));
    }
    sizes.push_back(size);
  }
  if (sizes.size() > kMostBoundaries) {
    return absl::InvalidArgumentError(
        absl::StrCat(sizes.size(), " sizes, the most are ", kMostBoundaries));
  }
  return sizes;
}

absl::StatusOr<int> ParseCount(absl::string_view text) {
  int count = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &count) || count < 1 ||
      count > kMostBoundaries) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a number of buckets from 1 to ", kMostBoundaries));
  }
  return count;
}

// "16,32,512" of a formula: first size, a number, last size.
struct Formula {
  int64_t first = 0, last = 0;
  absl::string_view middle;
};

absl::StatusOr<Formula> ParseFormula(absl::string_view text, absl::string_view shape) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not ", shape));
  }
  Formula formula;
  ASSIGN_OR_RETURN(formula.first, ParseSize(parts[0]));
  ASSIGN_OR_RETURN(formula.last, ParseSize(parts[2]));
  formula.middle = absl::StripAsciiWhitespace(parts[1]);
  return formula;
}

absl::Status CheckRange(int64_t first, int64_t last) {
  if (first >= 1 && last >= first && last <= kLargestSize) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sizes from ", first, " to ", last,
                                                 " are not in order between 1 and ", kLargestSize));
}

absl::Status TooMany(int64_t first, int64_t last) {
  return absl::InvalidArgumentError(
      absl::StrCat("more than ", kMostBoundaries, " sizes between ", first, " and ", last));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> LinearBoundaries(int64_t first, int64_t step, int64_t last) {
  RETURN_IF_ERROR(CheckRange(first, last));
  if (step < 1) return absl::InvalidArgumentError(absl::StrCat("a step of ", step));
  if ((last - first) / step >= kMostBoundaries) return TooMany(first, last);
  std::vector<int64_t> sizes;
  for (int64_t size = first; size < last; size += step) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

absl::StatusOr<std::vector<int64_t>> ExponentialBoundaries(int64_t first, double factor,
                                                           int64_t last) {
  RETURN_IF_ERROR(CheckRange(first, last));
  if (!(factor > 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a factor of ", factor, ", which is not above 1"));
  }
  std::vector<int64_t> sizes;
  double size = static_cast<double>(first);
  while (std::ceil(size) < static_cast<double>(last)) {
    if (sizes.size() >= kMostBoundaries - 1) return TooMany(first, last);
    sizes.push_back(static_cast<int64_t>(std::ceil(size)));
    // By one at least, so that a factor close to 1 ends too.
    size = std::max(size * factor, static_cast<double>(sizes.back() + 1));
  }
  sizes.push_back(last);
  return sizes;
}

std::vector<int64_t> PercentileBoundaries(absl::Span<const WeightedSize> seen, int k) {
  std::vector<int64_t> result;
  double count = 0;
  for (const WeightedSize& one : seen) count += one.weight;
  if (seen.empty()) return result;
  // In numpy's order of operations, so that a step that falls on a size falls on the same one.
  const double step = 100.0 / k;
  size_t at = 0;
  double below = seen[0].weight;  // observations up to seen[at]
  for (int i = 1; i <= k; ++i) {
    const double percent = i == k ? 100.0 : i * step;
    const double index = std::floor(percent / 100.0 * (count - 1));
    while (at + 1 < seen.size() && below <= index) below += seen[++at].weight;
    if (result.empty() || result.back() != seen[at].size) result.push_back(seen[at].size);
  }
  return result;
}

std::vector<int64_t> PowersOfTwo(absl::Span<const WeightedSize> seen) {
  std::vector<int64_t> result;
  if (seen.empty()) return result;
  const auto holds = [](int64_t size) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
  };
  for (int64_t size = holds(seen.front().size); size <= holds(seen.back().size); size *= 2) {
    result.push_back(size);
  }
  return result;
}

absl::StatusOr<BoundaryRule> ParseBoundaryRule(absl::string_view text) {
  using Kind = BoundaryRule::Kind;
  text = absl::StripAsciiWhitespace(text);
  BoundaryRule rule;
  absl::string_view rest = text;
  if (text == "auto") return rule;
  if (absl::ConsumePrefix(&rest, "auto:")) {
    ASSIGN_OR_RETURN(rule.most, ParseCount(rest));
  } else if (absl::ConsumePrefix(&rest, "percentile:")) {
    rule.kind = Kind::kPercentile;
    ASSIGN_OR_RETURN(rule.most, ParseCount(rest));
  } else if (absl::ConsumePrefix(&rest, "linear:")) {
    rule.kind = Kind::kLinear;
    ASSIGN_OR_RETURN(const Formula formula, ParseFormula(rest, "FIRST,STEP,LAST"));
    ASSIGN_OR_RETURN(const int64_t step, ParseSize(formula.middle));
    ASSIGN_OR_RETURN(rule.sizes, LinearBoundaries(formula.first, step, formula.last));
  } else if (absl::ConsumePrefix(&rest, "exponential:")) {
    rule.kind = Kind::kExponential;
    ASSIGN_OR_RETURN(const Formula formula, ParseFormula(rest, "FIRST,FACTOR,LAST"));
    double factor = 0;
    if (!absl::SimpleAtod(formula.middle, &factor) || !std::isfinite(factor)) {
      return absl::InvalidArgumentError(absl::StrCat("'", formula.middle, "' is not a factor"));
    }
    ASSIGN_OR_RETURN(rule.sizes, ExponentialBoundaries(formula.first, factor, formula.last));
  } else {
    rule.kind = Kind::kExplicit;
    const bool is_list = !text.empty() && absl::StrContains("0123456789", text.substr(0, 1));
    if (!is_list) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text,
                       "' is not a list of sizes, linear:FIRST,STEP,LAST, "
                       "exponential:FIRST,FACTOR,LAST, percentile:K, auto or auto:K"));
    }
    ASSIGN_OR_RETURN(rule.sizes, ParseSizes(text));
  }
  return rule;
}

}  // namespace reprise
