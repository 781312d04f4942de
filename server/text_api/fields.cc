#include "server/text_api/fields.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

absl::Status Wrong(absl::string_view name, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a ", wanted));
}

absl::Status Missing(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is missing"));
}

std::optional<std::string> TextOf(const element& json) {
  std::string_view text;
  if (json.get(text) == SUCCESS) return std::string(text);
  object of;
  if (json.get(of) == SUCCESS && of.at_key("text").get(text) == SUCCESS) return std::string(text);
  return std::nullopt;
}

// Returns the ids of a list of whole numbers.
absl::StatusOr<std::vector<uint32_t>> IdsOf(const array& list, absl::string_view name) {
  std::vector<uint32_t> ids;
  for (const element& each : list) {
    int64_t id = 0;
    if (each.get(id) != SUCCESS || id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name, "\" holds a list of ids with an element that is not an id"));
    }
    ids.push_back(static_cast<uint32_t>(id));
  }
  if (ids.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" holds an empty list of ids"));
  }
  return ids;
}

}  // namespace

absl::StatusOr<Fields> Fields::Of(const element& json) {
  object of;
  if (json.get(of) != SUCCESS)
    return absl::InvalidArgumentError("the request body must be a JSON object");
  return Fields(of);
}

std::optional<element> Fields::Find(const char* name) const {
  element member;
  if (object_.at_key(name).get(member) != SUCCESS || member.is_null()) return std::nullopt;
  return member;
}

absl::StatusOr<std::string> Fields::Text(const char* name, absl::string_view fallback) const {
  const auto member = Find(name);
  if (!member) return std::string(fallback);
  std::string_view text;
  if (member->get(text) != SUCCESS) return Wrong(name, "string");
  return std::string(text);
}

absl::StatusOr<bool> Fields::Bool(const char* name, bool fallback) const {
  const auto member = Find(name);
  if (!member) return fallback;
  bool value = false;
  if (member->get(value) != SUCCESS) return Wrong(name, "boolean");
  return value;
}

absl::StatusOr<int64_t> Fields::Int(const char* name, int64_t fallback) const {
  const auto member = Find(name);
  if (!member) return fallback;
  int64_t value = 0;
  if (member->get(value) != SUCCESS) return Wrong(name, "whole number");
  return value;
}

absl::StatusOr<std::optional<double>> Fields::Number(const char* name) const {
  const auto member = Find(name);
  if (!member) return std::optional<double>();
  double value = 0;
  if (member->get(value) != SUCCESS) return Wrong(name, "number");
  return std::optional<double>(value);
}

absl::StatusOr<std::string> Fields::WantText(const char* name) const {
  if (!Has(name)) return Missing(name);
  return Text(name, "");
}

absl::StatusOr<std::vector<std::string>> Fields::WantTexts(const char* name, bool* alone) const {
  const auto member = Find(name);
  if (!member) return Missing(name);
  if (alone != nullptr) *alone = true;
  if (auto text = TextOf(*member)) return std::vector<std::string>{*std::move(text)};
  if (alone != nullptr) *alone = false;
  array list;
  if (member->get(list) != SUCCESS) return Wrong(name, "text, nor list of texts");
  RETURN_IF_ERROR(CheckTextCount(static_cast<int64_t>(list.size())));
  std::vector<std::string> texts;
  for (const element& each : list) {
    auto text = TextOf(each);
    if (!text) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name, "\": element ", texts.size(), " must be a string"));
    }
    texts.push_back(*std::move(text));
  }
  return texts;
}

absl::StatusOr<std::vector<TextItem>> Fields::WantItems(const char* name, bool* alone) const {
  const auto member = Find(name);
  if (!member) return Missing(name);
  array list;
  const bool is_list = member->get(list) == SUCCESS;
  const bool has_first = is_list && list.size() > 0;
  std::vector<TextItem> items;
  if (has_first && list.at(0).is<int64_t>()) {
    if (alone != nullptr) *alone = true;
    TextItem& item = items.emplace_back();
    ASSIGN_OR_RETURN(item.ids, IdsOf(list, name));
    return items;
  }
  if (has_first && list.at(0).is<array>()) {
    RETURN_IF_ERROR(CheckTextCount(static_cast<int64_t>(list.size())));
    if (alone != nullptr) *alone = false;
    for (const element& each : list) {
      array ids;
      if (each.get(ids) != SUCCESS) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", name, "\": element ", items.size(), " must be a list of ids"));
      }
      TextItem& item = items.emplace_back();
      ASSIGN_OR_RETURN(item.ids, IdsOf(ids, name));
    }
    return items;
  }
  ASSIGN_OR_RETURN(std::vector<std::string> texts, WantTexts(name, alone));
  for (std::string& text : texts) items.push_back({.text = ShareText(std::move(text))});
  return items;
}

absl::StatusOr<Truncation> Fields::TruncationAsked() const {
  ASSIGN_OR_RETURN(const std::string direction, Text("truncation_direction", "right"));
  const std::string lower = absl::AsciiStrToLower(direction);
  if (lower != "right" && lower != "left") {
    return absl::OutOfRangeError(
        absl::StrCat("\"truncation_direction\" is \"", direction, "\", it must be Right or Left"));
  }
  bool truncate = false;
  if (const auto member = Find("truncate"); member && member->is<std::string_view>()) {
    // As others have it: START, END, NONE.
    ASSIGN_OR_RETURN(const std::string side, Text("truncate", ""));
    const std::string end = absl::AsciiStrToLower(side);
    if (end == "none") return Truncation::kNone;
    if (end == "start") return Truncation::kLeft;
    if (end == "end") return Truncation::kRight;
    return absl::OutOfRangeError(
        absl::StrCat("\"truncate\" is \"", side, "\", it must be NONE, START or END"));
  }
  ASSIGN_OR_RETURN(truncate, Bool("truncate", false));
  ASSIGN_OR_RETURN(const int64_t tokens, Int("truncate_prompt_tokens", 0));
  if (tokens > 0) {
    return absl::UnimplementedError(
        absl::StrCat("\"truncate_prompt_tokens\" is ", tokens,
                     "; -1, which cuts to the model's length, is supported"));
  }
  if (!truncate && tokens == 0) return Truncation::kNone;
  if (!Has("truncation_direction")) return Truncation::kBySide;
  return lower == "left" ? Truncation::kLeft : Truncation::kRight;
}

}  // namespace reprise
