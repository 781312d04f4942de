// Readers of the values that parameters of config.pbtxt have. Errors: INVALID_ARGUMENT, a text that
// goes on after the parameter and its value: "must be auto or off".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

inline constexpr int64_t kMostInteger = std::numeric_limits<int64_t>::max();

absl::Status WantInteger(absl::string_view value, int64_t least, int64_t most, int64_t& target);

// Reads MiB as bytes.
absl::Status WantMegabytes(absl::string_view value, int64_t least, int64_t& bytes);

// Checks that `value` is one of the words.
absl::Status WantWord(absl::string_view value, absl::Span<const absl::string_view> words);

// Sets `target` to the value that stands with the word.
template <typename Value, typename Target>
absl::Status WantChoice(absl::string_view value,
                        std::initializer_list<std::pair<absl::string_view, Value>> choices,
                        Target& target) {
  std::vector<absl::string_view> words;
  words.reserve(choices.size());
  for (const auto& [word, meant] : choices) {
    if (word == value) target = meant;
    words.push_back(word);
  }
  return WantWord(value, words);
}

// Adds the names of a list; one at least.
absl::Status ReadNames(absl::string_view value, std::vector<std::string>& names);

// Reads numbers of CPUs: "0-3,6".
absl::Status ReadCpus(absl::string_view value, std::vector<int>& cpus);

}  // namespace reprise
