#include "runtime/graph/text_lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

}  // namespace

bool IsTextIdentifier(absl::string_view text) {
  if (text.empty() || text == "_" || absl::ascii_isdigit(text[0]) || text[0] == '.') return false;
  for (char c : text) {
    if (!IsWordChar(c)) return false;
  }
  return true;
}

void TextLexer::SkipSpace() {
  while (position_ < text_.size() && absl::ascii_isspace(text_[position_])) ++position_;
}

bool TextLexer::AtEnd() {
  SkipSpace();
  return position_ == text_.size();
}

char TextLexer::Peek() { return AtEnd() ? '\0' : text_[position_]; }

bool TextLexer::TryChar(char c) {
  if (AtEnd() || text_[position_] != c) return false;
  ++position_;
  return true;
}

absl::Status TextLexer::Expect(char c) {
  if (TryChar(c)) return absl::OkStatus();
  return Error(absl::StrCat("expected '", absl::string_view(&c, 1), "'"));
}

absl::string_view TextLexer::Word() {
  SkipSpace();
  const size_t begin = position_;
  size_t end = begin;
  while (end < text_.size() && IsWordChar(text_[end])) ++end;
  return text_.substr(begin, end - begin);
}

bool TextLexer::TryWord(absl::string_view word) {
  if (Word() != word) return false;
  position_ += word.size();
  return true;
}

absl::StatusOr<std::string> TextLexer::Name() {
  if (Peek() == '"') return Quoted();
  const absl::string_view word = Word();
  if (word.empty()) return Error("expected a name");
  position_ += word.size();
  return std::string(word);
}

absl::StatusOr<std::string> TextLexer::Quoted() {
  if (Peek() != '"') return Error("expected a quoted string");
  size_t end = position_ + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    end += text_[end] == '\\' ? 2 : 1;
  }
  if (end >= text_.size() || text_[end] != '"') return Error("string without an end");
  std::string result, reason;
  if (!absl::CUnescape(text_.substr(position_ + 1, end - position_ - 1), &result, &reason)) {
    return Error(absl::StrCat("bad string: ", std::string(reason)));
  }
  position_ = end + 1;
  return result;
}

absl::StatusOr<std::string> TextLexer::Number() {
  SkipSpace();
  size_t end = position_;
  while (end < text_.size() && (IsWordChar(text_[end]) || text_[end] == '-' || text_[end] == '+')) {
    ++end;
  }
  if (text_.substr(position_, end - position_) == "nan" && end < text_.size() &&
      text_[end] == '(') {
    end = text_.find(')', end);
    if (end == absl::string_view::npos) return Error("'nan(' without ')'");
    ++end;
  }
  if (end == position_) return Error("expected a number");
  std::string result(text_.substr(position_, end - position_));
  position_ = end;
  return result;
}

absl::Status TextLexer::Error(absl::string_view message) {
  SkipSpace();
  int line = 1;
  int column = 1;
  for (char c : text_.substr(0, position_)) {
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
  std::string found = "the end";
  if (position_ < text_.size()) {
    const absl::string_view rest = text_.substr(position_, 20);
    found = absl::StrCat("\"", absl::CEscape(rest.substr(0, rest.find('\n'))), "\"");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ", column ", column, ": ", message, ", found ", found));
}

absl::Status TextLexer::ErrorAt(size_t position, absl::string_view message) {
  position_ = position;
  return Error(message);
}

}  // namespace reprise
