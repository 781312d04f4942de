#include "server/chat/argument_types.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace reprise {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 20;

// Returns whether values of the schema are texts or null. References are not followed.
bool IsOfTexts(const Json& schema, int depth) {
  if (!schema.is_object() || depth == kMaxDepth) return false;
  const auto is_text = [](const Json& type) { return type == "string" || type == "null"; };
  if (const auto type = schema.find("type"); type != schema.end()) {
    return type->is_array() ? std::all_of(type->begin(), type->end(), is_text) : is_text(*type);
  }
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    return std::all_of(values->begin(), values->end(), [](const Json& v) { return v.is_string(); });
  }
  for (const char* const several : {"anyOf", "oneOf"}) {
    const auto list = schema.find(several);
    if (list == schema.end() || !list->is_array()) continue;
    return std::all_of(list->begin(), list->end(),
                       [&](const Json& one) { return IsOfTexts(one, depth + 1); });
  }
  return false;
}

}  // namespace

ArgumentTypes::ArgumentTypes(absl::string_view tools) {
  const Json list = Json::parse(tools.begin(), tools.end(), nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return;
  for (const Json& tool : list) {
    const Json function = tool.is_object() ? tool.value("function", Json()) : Json();
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string() ||
        !function.contains("parameters") || !function["parameters"].is_object()) {
      continue;
    }
    const auto properties = function["parameters"].find("properties");
    if (properties == function["parameters"].end() || !properties->is_object()) continue;
    for (const auto& [name, schema] : properties->items()) {
      if (IsOfTexts(schema, 0)) texts_.emplace(function["name"].get<std::string>(), name);
    }
  }
}

bool ArgumentTypes::IsText(absl::string_view function, absl::string_view argument) const {
  return texts_.contains({std::string(function), std::string(argument)});
}

}  // namespace reprise
