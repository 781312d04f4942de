#include "server/text/text_stream.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

bool IsByteToken(const std::string& token) {
  return token.size() == 6 && absl::StartsWith(token, "<0x") && token.back() == '>';
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer),
      skip_special_(skip_special),
      has_byte_tokens_(tokenizer.Id("<0x0A>").has_value()) {}

absl::StatusOr<std::string> TextStream::Push(uint32_t id) {
  // A special token does not end a run of bytes.
  if (skip_special_ && tokenizer_.IsSpecial(id)) return std::string();
  window_.push_back(id);
  // A run of bytes is letters or is none as a whole.
  if (has_byte_tokens_ && IsByteToken(tokenizer_.Token(id))) return std::string();
  return Next(/*all=*/false);
}

absl::StatusOr<std::string> TextStream::Finish() { return Next(/*all=*/true); }

absl::StatusOr<std::string> TextStream::Next(bool all) {
  if (told_ == window_.size()) return std::string();
  const absl::Span<const uint32_t> window(window_);
  ASSIGN_OR_RETURN(const std::string before,
                   tokenizer_.Decode(window.subspan(0, told_), skip_special_));
  ASSIGN_OR_RETURN(std::string text, tokenizer_.Decode(window, skip_special_));
  if (text.size() <= before.size()) return std::string();
  if (!all && absl::EndsWith(text, kReplacement)) return std::string();
  text.erase(0, before.size());
  // Later ids depend on the last ones that were told, as blanks at the front of a text differ.
  window_.erase(window_.begin(), window_.begin() + static_cast<ptrdiff_t>(told_));
  told_ = window_.size();
  return text;
}

}  // namespace reprise
