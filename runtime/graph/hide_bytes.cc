#include "runtime/graph/hide_bytes.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr absl::string_view kOpening = "hex\"";
constexpr absl::string_view kHidden = " bytes}";
// No constant of a file is larger.
constexpr uint64_t kMostBytes = uint64_t{1} << 31;

}  // namespace

std::string HideBytes(absl::string_view text) {
  std::string shown;
  while (true) {
    const size_t at = text.find(kOpening);
    if (at == absl::string_view::npos) break;
    const absl::string_view behind = text.substr(at + kOpening.size());
    const absl::string_view digits = behind.substr(0, behind.find('"'));
    // A text of the model may end in the same letters: "hex" itself.
    if (digits.empty() || !absl::c_all_of(digits, absl::ascii_isxdigit)) {
      absl::StrAppend(&shown, text.substr(0, at), kOpening);
      text = behind;
      continue;
    }
    absl::StrAppend(&shown, text.substr(0, at), "{", digits.size() / 2, " bytes}");
    text = behind.substr(std::min(behind.size(), digits.size() + 1));
  }
  absl::StrAppend(&shown, text);
  return shown;
}

std::string ZeroHiddenBytes(absl::string_view text) {
  std::string filled;
  while (true) {
    const size_t at = text.find(kHidden);
    if (at == absl::string_view::npos) break;
    const size_t opening = text.substr(0, at).rfind('{');
    uint64_t bytes = 0;
    if (opening == absl::string_view::npos ||
        !absl::SimpleAtoi(text.substr(opening + 1, at - opening - 1), &bytes) ||
        bytes > kMostBytes) {
      absl::StrAppend(&filled, text.substr(0, at + kHidden.size()));
    } else {
      absl::StrAppend(&filled, text.substr(0, opening), kOpening);
      filled.append(2 * static_cast<size_t>(bytes), '0');
      filled += '"';
    }
    text.remove_prefix(at + kHidden.size());
  }
  absl::StrAppend(&filled, text);
  return filled;
}

}  // namespace reprise
