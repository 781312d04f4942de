#include "server/chat/tagged_arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/json/json_writer.h"

namespace reprise {
namespace {

constexpr absl::string_view kArgument = "<parameter=";
constexpr absl::string_view kArgumentEnd = "</parameter>";
constexpr absl::string_view kCallEnd = "</function>";
constexpr absl::string_view kCallsEnd = "</tool_call>";

// Returns the number of bytes at the end of `text` that may belong to the end of a value.
size_t EndOfValueSize(absl::string_view text) {
  const std::string end = absl::StrCat("\n", kArgumentEnd);
  size_t size = std::min(end.size() - 1, text.size());
  const auto may_be_end = [&](size_t n) {
    const absl::string_view last = text.substr(text.size() - n);
    return absl::StartsWith(end, last) || absl::StartsWith(kArgumentEnd, last);
  };
  while (size > 0 && !may_be_end(size)) --size;
  return size;
}

// Returns the number of bytes in front of a letter that has not come whole.
size_t WholeLetters(absl::string_view text) {
  size_t begin = text.size();
  size_t inside = 0;
  while (begin > 0 && inside < 4 && (static_cast<unsigned char>(text[begin - 1]) & 0xC0) == 0x80) {
    --begin;
    ++inside;
  }
  if (begin == 0) return text.size();
  const auto lead = static_cast<unsigned char>(text[begin - 1]);
  const size_t follow = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  return inside < follow ? begin - 1 : text.size();
}

// Returns the letters of a JSON text, without its quotes.
std::string Escaped(absl::string_view text) {
  std::string json = JsonText(std::string(text));
  return json.substr(1, json.size() - 2);
}

// Returns the JSON of a value that no schema makes a text.
std::string JsonOfValue(absl::string_view text) {
  std::string value(absl::StripAsciiWhitespace(text));
  if (nlohmann::json::accept(value)) return value;
  // Models write words of Python, too.
  if (value == "True") return "true";
  if (value == "False") return "false";
  if (value == "None") return "null";
  return JsonText(std::string(text));
}

}  // namespace

bool TaggedArguments::Take(std::string& text, std::string& json) {
  Step step = Step::kOn;
  while (step == Step::kOn) step = in_value_ ? Value(text, json) : Between(text, json);
  return step == Step::kEnd;
}

TaggedArguments::Step TaggedArguments::Between(std::string& text, std::string& json) {
  if (text.empty()) return Step::kMore;
  const bool ends = absl::StartsWith(text, kCallEnd);
  if (ends || absl::StartsWith(text, kCallsEnd)) {
    // The end of the calls is read by the caller.
    if (ends) text.erase(0, kCallEnd.size());
    json += has_any_ ? "}" : "{}";
    return Step::kEnd;
  }
  if (absl::StartsWith(text, kArgument)) {
    const size_t end = text.find('>');
    if (end == std::string::npos) return Step::kMore;
    const std::string name = text.substr(kArgument.size(), end - kArgument.size());
    text.erase(0, end + 1);
    absl::StrAppend(&json, std::exchange(has_any_, true) ? ", " : "{", JsonText(name), ": ");
    in_value_ = true;
    is_begun_ = false;
    is_text_ = types_.IsText(function_, name);
    return Step::kOn;
  }
  for (const absl::string_view mark : {kCallEnd, kCallsEnd, kArgument}) {
    if (absl::StartsWith(mark, text)) return Step::kMore;
  }
  // Text between arguments means nothing.
  text.erase(0, 1);
  return Step::kOn;
}

TaggedArguments::Step TaggedArguments::Value(std::string& text, std::string& json) {
  if (!is_begun_) {
    if (text.empty()) return Step::kMore;
    if (text.front() == '\n') text.erase(0, 1);
    if (is_text_) json += '"';
    is_begun_ = true;
  }
  const size_t end = text.find(kArgumentEnd.data(), 0, kArgumentEnd.size());
  if (end == std::string::npos) {
    if (!is_text_) return Step::kMore;
    const absl::string_view sure(text.data(), text.size() - EndOfValueSize(text));
    const size_t told = WholeLetters(sure);
    json += Escaped(sure.substr(0, told));
    text.erase(0, told);
    return Step::kMore;
  }
  absl::string_view value(text.data(), end);
  if (absl::EndsWith(value, "\n")) value.remove_suffix(1);
  json += is_text_ ? absl::StrCat(Escaped(value), "\"") : JsonOfValue(value);
  text.erase(0, end + kArgumentEnd.size());
  in_value_ = false;
  return Step::kOn;
}

}  // namespace reprise
