#include "runtime/graph/hide_bytes.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr absl::string_view kOpening = "hex\"";

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

}  // namespace reprise
