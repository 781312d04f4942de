#include "runtime/engine/metrics/json_writer.h"

#include <cmath>
#include <utility>

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

void AppendQuoted(absl::string_view text, std::string& out) {
  out += '"';
  while (true) {
    const size_t at = text.find_first_of("\n\t");
    AppendPrintable(text.substr(0, at), out);
    if (at == absl::string_view::npos) break;
    out += text[at] == '\n' ? "\\n" : "\\t";
    text.remove_prefix(at + 1);
  }
  out += '"';
}

}  // namespace

void JsonWriter::BeginValue() {
  if (std::exchange(after_key_, false) || depth_ == 0) return;
  if (!std::exchange(first_, false)) text_ += ',';
  text_ += '\n';
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
}

void JsonWriter::Key(absl::string_view name) {
  BeginValue();
  AppendQuoted(name, text_);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::Value(absl::string_view text) {
  BeginValue();
  AppendQuoted(text, text_);
}

void JsonWriter::Value(double value) {
  Put(std::isfinite(value) ? FormatText("%.9g", value) : "null");
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
  if (!std::exchange(first_, false)) {
    text_ += '\n';
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
  }
  text_ += bracket;
}

std::string JsonWriter::Take() {
  text_ += '\n';
  return std::move(text_);
}

}  // namespace reprise
