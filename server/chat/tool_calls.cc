#include "server/chat/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using Json = nlohmann::json;

// Returns the longest end of `text` that may be the beginning of one of `marks`.
size_t UnsureEnd(absl::string_view text, const std::vector<const char*>& marks) {
  size_t unsure = 0;
  for (const absl::string_view mark : marks) {
    size_t size = std::min(mark.size() - 1, text.size());
    while (size > unsure && !absl::EndsWith(text, mark.substr(0, size))) --size;
    unsure = std::max(unsure, size);
  }
  return unsure;
}

// Returns the mark that `text` begins with; empty: none.
absl::string_view MarkAt(absl::string_view text, const std::vector<const char*>& marks) {
  absl::string_view longest;
  for (const absl::string_view mark : marks) {
    if (absl::StartsWith(text, mark) && mark.size() > longest.size()) longest = mark;
  }
  return longest;
}

// Returns whether `text` is the beginning of a mark, and more of it is needed.
bool MayBeMark(absl::string_view text, const std::vector<const char*>& marks) {
  return std::any_of(marks.begin(), marks.end(), [&](absl::string_view mark) {
    return text.size() < mark.size() && absl::StartsWith(mark, text);
  });
}

// Returns the end of the JSON value at `begin` of `text`, at depth 0; npos: it has not ended.
size_t EndOfValue(absl::string_view text, size_t begin) {
  int64_t depth = 0;
  bool in_text = false, escaped = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_text = false;
        if (depth == 0) return i + 1;
      }
      continue;
    }
    if (c == '"') in_text = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']' || c == ',') {
      if (depth == 0) return i;  // the end of a number or a word
      if (c != ',' && --depth == 0) return i + 1;
    }
  }
  return absl::string_view::npos;
}

size_t SkipBlanks(absl::string_view text, size_t at) {
  while (at < text.size() && absl::ascii_isspace(static_cast<unsigned char>(text[at]))) ++at;
  return at;
}

constexpr absl::string_view kFunction = "<function=";

bool IsArguments(absl::string_view key) { return key == "arguments" || key == "parameters"; }

// The front of an object that may be a call.
struct Head {
  enum class Kind { kMore, kNone, kCall, kWhole } kind = Kind::kMore;
  std::string name;
  size_t arguments = 0;  // kCall: where they begin
  std::string value;     // kWhole: they precede the name
  size_t end = 0;        // kWhole: the end of the object
};

Head ReadHead(absl::string_view text) {
  Head head;
  std::optional<std::string> value;
  size_t at = SkipBlanks(text, 1);
  bool has_name = false;
  while (at < text.size()) {
    if (text[at] == '}') {
      if (!has_name) return {.kind = Head::Kind::kNone};
      head.kind = Head::Kind::kWhole;
      head.value = value.value_or("{}");
      head.end = at + 1;
      return head;
    }
    if (text[at] == ',') {
      at = SkipBlanks(text, at + 1);
      continue;
    }
    if (text[at] != '"') return {.kind = Head::Kind::kNone};
    const size_t key_end = EndOfValue(text, at);
    if (key_end == absl::string_view::npos) return head;
    const std::string key(text.substr(at + 1, key_end - at - 2));
    size_t begin = SkipBlanks(text, key_end);
    if (begin == text.size()) return head;
    if (text[begin] != ':') return {.kind = Head::Kind::kNone};
    begin = SkipBlanks(text, begin + 1);
    if (begin == text.size()) return head;
    if (IsArguments(key) && has_name && text[begin] == '{') {
      head.kind = Head::Kind::kCall;
      head.arguments = begin;
      return head;
    }
    const size_t end = EndOfValue(text, begin);
    if (end == absl::string_view::npos) return head;
    const Json json = Json::parse(std::string(text.substr(begin, end - begin)), nullptr, false);
    if (json.is_discarded()) return {.kind = Head::Kind::kNone};
    if (key == "name") {
      if (!json.is_string()) return {.kind = Head::Kind::kNone};
      head.name = json.get<std::string>();
      has_name = true;
    } else if (IsArguments(key)) {
      // A text that is JSON stands for it.
      value =
          json.is_string() ? json.get<std::string>() : std::string(text.substr(begin, end - begin));
    }
    at = SkipBlanks(text, end);
  }
  return head;
}

}  // namespace

ToolCallParts ToolCallReader::Push(absl::string_view text) {
  absl::StrAppend(&held_, text);
  ToolCallParts parts;
  while (!held_.empty() && Step(/*ended=*/false, parts)) {
  }
  return parts;
}

ToolCallParts ToolCallReader::Finish() {
  ToolCallParts parts;
  while (!held_.empty() && Step(/*ended=*/true, parts)) {
  }
  // An incomplete call is told as it is; text that never became one is content, except for the
  // texts around calls.
  const bool in_call =
      state_ == State::kArguments || state_ == State::kTags || state_ == State::kTail;
  const bool after_calls = state_ == State::kAround && calls_ > 0;
  if (!in_call && !after_calls) parts.content += std::exchange(unsure_, "") + held_;
  held_.clear();
  return parts;
}

bool ToolCallReader::Step(bool ended, ToolCallParts& parts) {
  switch (state_) {
    case State::kBegin:
      return Begin(ended, parts);
    case State::kContent:
      return Content(ended, parts);
    case State::kAround:
      return Around(ended, parts);
    case State::kName:
      return Name(parts);
    case State::kObject:
      return Object(parts);
    case State::kArguments:
      return Arguments(parts);
    case State::kTags:
      return Tags(parts);
    case State::kTail:
      return Tail();
  }
  return false;
}

void ToolCallReader::Drop(size_t size) {
  unsure_ += held_.substr(0, size);
  held_.erase(0, size);
}

bool ToolCallReader::Begin(bool ended, ToolCallParts& parts) {
  const size_t at = SkipBlanks(held_, 0);
  if (at == held_.size() && !ended) return false;
  const bool calls = form_.plain && at < held_.size() && (held_[at] == '{' || held_[at] == '[');
  state_ = calls ? State::kAround : State::kContent;
  return true;
}

bool ToolCallReader::Content(bool ended, ToolCallParts& parts) {
  size_t begin = std::string::npos;
  for (const char* mark : form_.begins) begin = std::min(begin, held_.find(mark));
  if (begin == std::string::npos) {
    const size_t held = ended ? 0 : UnsureEnd(held_, form_.begins);
    parts.content += held_.substr(0, held_.size() - held);
    held_.erase(0, held_.size() - held);
    return false;
  }
  parts.content += held_.substr(0, begin);
  held_.erase(0, begin);
  state_ = State::kAround;
  return true;
}

bool ToolCallReader::Around(bool ended, ToolCallParts& parts) {
  constexpr absl::string_view kBetween = ",;[]";
  const char c = held_.front();
  const absl::string_view mark = MarkAt(held_, form_.around);
  if (!mark.empty() || absl::ascii_isspace(static_cast<unsigned char>(c))) {
    Drop(std::max<size_t>(mark.size(), 1));
    return true;
  }
  if (form_.tagged && absl::StartsWith(held_, kFunction)) return TaggedName(parts);
  if (!ended && MayBeMark(held_, form_.around)) return false;
  if (!ended && form_.tagged && absl::StartsWith(kFunction, held_)) return false;
  if (kBetween.find(c) != absl::string_view::npos) {
    Drop(1);
    return true;
  }
  if (c == '{') {
    state_ = State::kObject;
    return true;
  }
  if (form_.named && (absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_')) {
    state_ = State::kName;
    return true;
  }
  // Something else follows the calls, or there were none.
  parts.content += std::exchange(unsure_, "");
  state_ = State::kContent;
  return true;
}

bool ToolCallReader::Name(ToolCallParts& parts) {
  const size_t begin = held_.find('{');
  if (begin == std::string::npos) return false;
  absl::string_view front = absl::string_view(held_).substr(0, begin);
  if (form_.id_mark != nullptr) front = front.substr(0, front.find(form_.id_mark));
  std::string name, rest(front);
  while (!rest.empty()) {
    size_t cut = rest.size(), size = 0;
    for (const absl::string_view separator : form_.separators) {
      const size_t at = rest.find(std::string(separator));
      if (at < cut) cut = at, size = separator.size();
    }
    const std::string part(absl::StripAsciiWhitespace(absl::string_view(rest).substr(0, cut)));
    if (!part.empty()) name = part;
    rest.erase(0, cut + size);
  }
  held_.erase(0, begin);
  in_object_ = false;
  BeginCall(std::move(name), parts);
  return true;
}

bool ToolCallReader::Object(ToolCallParts& parts) {
  Head head = ReadHead(held_);
  switch (head.kind) {
    case Head::Kind::kMore:
      return false;
    case Head::Kind::kNone:
      parts.content += std::exchange(unsure_, "") + held_.substr(0, 1);
      held_.erase(0, 1);
      state_ = State::kContent;
      return true;
    case Head::Kind::kWhole:
      BeginCall(std::move(head.name), parts);
      parts.calls.back().arguments = std::move(head.value);
      held_.erase(0, head.end);
      state_ = State::kAround;
      return true;
    case Head::Kind::kCall:
      held_.erase(0, head.arguments);
      in_object_ = true;
      BeginCall(std::move(head.name), parts);
      return true;
  }
  return false;
}

void ToolCallReader::BeginCall(std::string name, ToolCallParts& parts) {
  unsure_.clear();
  parts.calls.push_back({.index = calls_++, .name = std::move(name)});
  state_ = State::kArguments;
  depth_ = 0;
  in_text_ = escaped_ = false;
}

bool ToolCallReader::Arguments(ToolCallParts& parts) {
  size_t at = 0;
  bool ended = false;
  while (at < held_.size() && !ended) {
    const char c = held_[at++];
    if (in_text_) {
      if (escaped_) {
        escaped_ = false;
      } else {
        escaped_ = c == '\\';
        in_text_ = c != '"';
      }
      continue;
    }
    in_text_ = c == '"';
    if (c == '{' || c == '[') ++depth_;
    if ((c == '}' || c == ']') && --depth_ <= 0) ended = true;
  }
  if (parts.calls.empty()) parts.calls.push_back({.index = calls_ - 1});
  parts.calls.back().arguments += held_.substr(0, at);
  held_.erase(0, at);
  if (!ended) return false;
  // The rest of the object is skipped, up to its end.
  state_ = in_object_ ? State::kTail : State::kAround;
  return true;
}

// Reads <function=NAME>, after which tags follow, or an object as other families write it.
bool ToolCallReader::TaggedName(ToolCallParts& parts) {
  const size_t end = held_.find('>');
  if (end == std::string::npos) return false;
  const size_t next = SkipBlanks(held_, end + 1);
  if (next == held_.size()) return false;
  std::string name = held_.substr(kFunction.size(), end - kFunction.size());
  const bool is_object = held_[next] == '{';
  held_.erase(0, next);
  in_object_ = false;
  if (!is_object) tags_.emplace(types_, name);
  BeginCall(std::move(name), parts);
  if (!is_object) state_ = State::kTags;
  return true;
}

bool ToolCallReader::Tags(ToolCallParts& parts) {
  std::string json;
  const bool ended = tags_->Take(held_, json);
  if (!json.empty()) {
    if (parts.calls.empty()) parts.calls.push_back({.index = calls_ - 1});
    parts.calls.back().arguments += json;
  }
  if (ended) state_ = State::kAround;
  return ended;
}

// Skips the members of the object after its arguments, and its brace.
bool ToolCallReader::Tail() {
  size_t at = 0;
  bool in_text = false;
  for (; at < held_.size(); ++at) {
    const char c = held_[at];
    if (c == '"' && (at == 0 || held_[at - 1] != '\\')) in_text = !in_text;
    if (c == '}' && !in_text) {
      held_.erase(0, at + 1);
      state_ = State::kAround;
      return true;
    }
  }
  return false;
}

}  // namespace reprise
