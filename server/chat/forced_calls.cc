#include "server/chat/forced_calls.h"

#include <simdjson.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using OrderedJson = nlohmann::ordered_json;

// References to the root of a schema lead to `path` of the one that it becomes a part of.
void MoveReferences(const std::string& path, OrderedJson& schema) {
  if (schema.is_object()) {
    const auto reference = schema.find("$ref");
    if (reference != schema.end() && reference->is_string()) {
      const std::string to = reference->get<std::string>();
      if (absl::StartsWith(to, "#")) *reference = absl::StrCat(path, to.substr(1));
    }
  }
  if (!schema.is_structured()) return;
  for (OrderedJson& member : schema) MoveReferences(path, member);
}

}  // namespace

absl::StatusOr<GrammarText> ForcedCalls(const simdjson::dom::array& tools, const std::string& only,
                                        bool several) {
  OrderedJson calls = OrderedJson::array();
  for (const simdjson::dom::element tool : tools) {
    std::string_view name;
    simdjson::dom::element parameters;
    if (tool["function"]["name"].get(name) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError("\"tools\" has a tool without a function that has a name");
    }
    if (!only.empty() && name != only) continue;
    // Without a schema a function takes nothing.
    OrderedJson schema = OrderedJson{{"type", "object"}, {"additionalProperties", false}};
    if (tool["function"]["parameters"].get(parameters) == simdjson::SUCCESS &&
        parameters.is_object()) {
      schema = OrderedJson::parse(std::string(simdjson::minify(parameters)), nullptr, false);
    }
    MoveReferences(absl::StrCat("#/items/anyOf/", calls.size(), "/properties/arguments"), schema);
    calls.push_back(
        OrderedJson{{"type", "object"},
                    {"properties", {{"name", {{"const", name}}}, {"arguments", schema}}},
                    {"required", {"name", "arguments"}},
                    {"additionalProperties", false}});
  }
  if (calls.empty()) {
    return absl::InvalidArgumentError(
        only.empty() ? "\"tool_choice\" asks for a call, and there are no \"tools\""
                     : absl::StrCat("\"tool_choice\" names the tool \"", only,
                                    "\", and \"tools\" has none of that name"));
  }
  OrderedJson list{{"type", "array"}, {"items", {{"anyOf", std::move(calls)}}}, {"minItems", 1}};
  if (!several) list["maxItems"] = 1;
  // No blanks: an answer spends no tokens on them.
  list["x-guidance"] = OrderedJson{{"whitespace_flexible", false}, {"coerce_one_of", true}};
  return GrammarText{.kind = GrammarKind::kJsonSchema, .text = list.dump()};
}

}  // namespace reprise
