#include "client/cli/lengths.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

constexpr double kLongest = 1 << 24;

// Uniform in [0, 1): the upper 53 bits.
double Unit(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1.0p-53; }

absl::StatusOr<std::vector<double>> Numbers(absl::string_view text, char separator, size_t count) {
  std::vector<double> numbers;
  for (absl::string_view part : absl::StrSplit(text, separator)) {
    double number = 0;
    if (!absl::SimpleAtod(part, &number) || !std::isfinite(number) || number < 0) {
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' is not a number"));
    }
    numbers.push_back(number);
  }
  if (numbers.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has ", numbers.size(), " numbers, not ", count));
  }
  return numbers;
}

absl::Status CheckLengths(absl::string_view text, double shortest, double longest) {
  if (shortest < 1 || longest > kLongest || shortest > longest) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' gives lengths from ", shortest, " to ", longest,
                     "; they must be at least 1, at most ", kLongest, ", and in order"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  std::vector<double> lengths;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty()) continue;
    int64_t length = 0;
    if (!absl::SimpleAtoi(text, &length) || length < 1 || length > kLongest) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": '", text, "' is not a length"));
    }
    lengths.push_back(static_cast<double>(length));
  }
  if (lengths.empty()) return absl::InvalidArgumentError(absl::StrCat("no length in '", path, "'"));
  return lengths;
}

}  // namespace

absl::StatusOr<Lengths> Lengths::Parse(absl::string_view text) {
  Lengths lengths;
  auto& n = lengths.numbers_;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "uniform:")) {
    lengths.kind_ = Kind::kUniform;
    ASSIGN_OR_RETURN(n, Numbers(rest, '-', 2));
    RETURN_IF_ERROR(CheckLengths(text, n[0], n[1]));
  } else if (absl::ConsumePrefix(&rest, "lognormal:")) {
    lengths.kind_ = Kind::kLognormal;
    ASSIGN_OR_RETURN(n, Numbers(rest, ',', 4));
    RETURN_IF_ERROR(CheckLengths(text, n[2], n[3]));
    if (n[0] < 1) return absl::InvalidArgumentError("the median must be at least 1");
  } else if (absl::ConsumePrefix(&rest, "bimodal:")) {
    lengths.kind_ = Kind::kBimodal;
    ASSIGN_OR_RETURN(n, Numbers(rest, ',', 3));
    RETURN_IF_ERROR(CheckLengths(text, std::min(n[0], n[1]), std::max(n[0], n[1])));
    if (n[2] > 1) return absl::InvalidArgumentError("the share must be between 0 and 1");
  } else if (absl::ConsumePrefix(&rest, "file:")) {
    lengths.kind_ = Kind::kList;
    ASSIGN_OR_RETURN(n, ReadFile(std::string(rest)));
  } else if (absl::StrContains(text, ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a distribution; known: ", kLengthsHelp));
  } else {
    lengths.kind_ = Kind::kConstant;
    ASSIGN_OR_RETURN(n, Numbers(rest, ',', 1));
    RETURN_IF_ERROR(CheckLengths(text, n[0], n[0]));
  }
  return lengths;
}

int64_t Lengths::DrawOne(size_t index, std::mt19937_64& random) const {
  const auto& n = numbers_;
  switch (kind_) {
    case Kind::kConstant:
      return std::llround(n[0]);
    case Kind::kUniform:
      return static_cast<int64_t>(n[0] + Unit(random) * (n[1] - n[0] + 1));
    case Kind::kLognormal: {
      // Box and Muller's transform.
      const double radius = std::sqrt(-2 * std::log(1 - Unit(random)));
      const double normal = radius * std::cos(2 * std::numbers::pi * Unit(random));
      return std::llround(std::clamp(n[0] * std::exp(n[1] * normal), n[2], n[3]));
    }
    case Kind::kBimodal:
      return std::llround(Unit(random) < n[2] ? n[0] : n[1]);
    case Kind::kList:
      return std::llround(n[index % n.size()]);
  }
  return 1;
}

std::vector<int64_t> Lengths::Draw(size_t count, uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<int64_t> lengths;
  lengths.reserve(count);
  for (size_t i = 0; i < count; ++i) lengths.push_back(DrawOne(i, random));
  return lengths;
}

}  // namespace reprise::cli
