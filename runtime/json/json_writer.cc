#include "runtime/json/json_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

// Appends printable text, which needs no other escapes than for quotes and backslashes.
void AppendPrintable(absl::string_view text, std::string& out) {
  for (const char c : IsPrintable(text) ? std::string(text) : Printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
}

void AppendShown(absl::string_view text, std::string& out) {
  while (true) {
    const size_t at = text.find_first_of("\n\t");
    AppendPrintable(text.substr(0, at), out);
    if (at == absl::string_view::npos) break;
    out += text[at] == '\n' ? "\\n" : "\\t";
    text.remove_prefix(at + 1);
  }
}

// Appends an ASCII character that cannot stand in a text of JSON as it is.
void AppendEscape(char c, std::string& out) {
  constexpr absl::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  if (const size_t at = kShort.find(c); at != absl::string_view::npos) {
    out += '\\';
    out += kLetters[at];
  } else {
    absl::StrAppend(&out, "\\u", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
  }
}

void AppendExactly(absl::string_view text, std::string& out) {
  size_t plain = 0;  // bytes that are written as they are
  const auto write_plain = [&](size_t skipped) {
    out.append(text.data(), plain);
    text.remove_prefix(plain + skipped);
    plain = 0;
  };
  while (plain < text.size()) {
    const auto byte = static_cast<unsigned char>(text[plain]);
    if (byte < 0x20 || byte == '"' || byte == '\\') {
      write_plain(1);
      AppendEscape(static_cast<char>(byte), out);
    } else if (byte < 0x80) {
      ++plain;
    } else if (const Utf8Character character = FirstCharacter(text.substr(plain));
               character.bytes > 0) {
      plain += character.bytes;
    } else {
      write_plain(character.broken);
      out += "\ufffd";
    }
  }
  write_plain(0);
}

void AppendQuoted(absl::string_view text, JsonForm form, std::string& out) {
  out += '"';
  form == JsonForm::kCompact ? AppendExactly(text, out) : AppendShown(text, out);
  out += '"';
}

}  // namespace

void JsonWriter::NewLine() {
  if (form_ == JsonForm::kCompact) return;
  text_ += '\n';
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
}

void JsonWriter::BeginValue() {
  if (std::exchange(after_key_, false) || depth_ == 0) return;
  if (!std::exchange(first_, false)) text_ += ',';
  NewLine();
}

void JsonWriter::Key(absl::string_view name) {
  BeginValue();
  AppendQuoted(name, form_, text_);
  text_ += form_ == JsonForm::kCompact ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::Value(absl::string_view text) {
  BeginValue();
  AppendQuoted(text, form_, text_);
}

void JsonWriter::Value(double value) {
  Put(std::isfinite(value) ? FormatText("%.9g", value) : "null");
}

void JsonWriter::Value(float value) {
  if (!std::isfinite(value)) return Put("null");
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  Put({digits, static_cast<size_t>(end.ptr - digits)});
}

void JsonWriter::Put(absl::string_view value) {
  BeginValue();
  text_.append(value.data(), value.size());
}

void JsonWriter::Open(char bracket) {
  BeginValue();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::Close(char bracket) {
  --depth_;
  if (!std::exchange(first_, false)) NewLine();
  text_ += bracket;
}

std::string JsonWriter::Take() {
  if (form_ == JsonForm::kIndented) text_ += '\n';
  return std::move(text_);
}

std::string JsonText(absl::string_view text) {
  std::string json;
  AppendQuoted(text, JsonForm::kCompact, json);
  return json;
}

}  // namespace reprise
