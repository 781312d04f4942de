#include "server/rest/json_numbers.h"

#include <simdjson.h>

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace reprise {
namespace {

constexpr struct {
  absl::string_view word;
  double number;
} kWords[] = {{"NaN", std::numeric_limits<double>::quiet_NaN()},
              {"Infinity", std::numeric_limits<double>::infinity()},
              {"-Infinity", -std::numeric_limits<double>::infinity()}};

// Returns the text that `json` begins with, from quote to quote.
size_t TextLength(absl::string_view json) {
  size_t i = 1;
  while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
  return std::min(i + 1, json.size());
}

bool IsInWord(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '+' || c == '.'; }

bool IsLargeInteger(absl::string_view word) {
  int64_t small = 0;
  uint64_t large = 0;
  const absl::string_view digits = word.substr(absl::StartsWith(word, "-") ? 1 : 0);
  return !digits.empty() && std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
         !absl::SimpleAtoi(word, &small) && !absl::SimpleAtoi(word, &large);
}

}  // namespace

std::string WithPlainNumbers(absl::string_view json) {
  std::string plain;
  plain.reserve(json.size() + json.size() / 8);
  while (!json.empty()) {
    size_t length = 1;
    if (json[0] == '"') {
      length = TextLength(json);
    } else if (IsInWord(json[0])) {
      while (length < json.size() && IsInWord(json[length])) ++length;
      const absl::string_view word = json.substr(0, length);
      const bool odd = std::any_of(std::begin(kWords), std::end(kWords),
                                   [&](const auto& one) { return one.word == word; });
      if (odd || IsLargeInteger(word)) {
        plain += odd ? "\"" : "";
        plain.append(word.data(), word.size());
        plain += odd ? "\"" : ".0";
        json.remove_prefix(length);
        continue;
      }
    }
    plain.append(json.data(), length);
    json.remove_prefix(length);
  }
  return plain;
}

std::optional<double> OddNumber(const simdjson::dom::element& json) {
  std::string_view text;
  if (json.get(text) != simdjson::SUCCESS) return std::nullopt;
  for (const auto& [word, number] : kWords) {
    if (text == std::string_view(word.data(), word.size())) return number;
  }
  return std::nullopt;
}

}  // namespace reprise
