#include "server/text/closed_schema.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 200;

// Members that hold a schema, or a list of schemas.
constexpr absl::string_view kSchemas[] = {"items",           "prefixItems", "additionalProperties",
                                          "additionalItems", "contains",    "propertyNames",
                                          "anyOf",           "oneOf",       "allOf"};
// Members that hold schemas by name.
constexpr absl::string_view kNamedSchemas[] = {"properties", "patternProperties", "$defs",
                                               "definitions"};
// Members that let several schemas say what one object has.
constexpr absl::string_view kOfSeveral[] = {"not",
                                            "if",
                                            "then",
                                            "else",
                                            "dependentSchemas",
                                            "dependencies",
                                            "unevaluatedProperties",
                                            "$dynamicRef",
                                            "$recursiveRef"};
constexpr absl::string_view kOthers[] = {"anyOf", "oneOf", "allOf", "$ref"};

// Calls `visit` for each schema in `schema` but itself.
template <class Visit>
void VisitParts(Json& schema, const Visit& visit) {
  for (auto member = schema.begin(); member != schema.end(); ++member) {
    if (absl::c_linear_search(kSchemas, member.key())) {
      if (!member->is_array()) {
        visit(*member);
        continue;
      }
      for (Json& one : *member) visit(one);
    } else if (absl::c_linear_search(kNamedSchemas, member.key()) && member->is_object()) {
      for (Json& one : *member) visit(one);
    }
  }
}

// Returns whether each object in `schema` is described by one schema alone.
bool IsOfOne(Json& schema, int depth) {
  if (!schema.is_object()) return true;
  if (depth == kMaxDepth) return false;
  const auto has = [&](absl::string_view name) { return schema.contains(std::string(name)); };
  if (std::any_of(std::begin(kOfSeveral), std::end(kOfSeveral), has)) return false;
  const bool own = has("properties") || has("required") || has("additionalProperties");
  if (own && std::any_of(std::begin(kOthers), std::end(kOthers), has)) return false;
  // One alone is how some libraries write a reference with a description.
  const auto all = schema.find("allOf");
  if (all != schema.end() && all->size() > 1) return false;
  bool is_one = true;
  VisitParts(schema, [&](Json& part) { is_one = is_one && IsOfOne(part, depth + 1); });
  return is_one;
}

// Returns whether an object may have the listed properties alone.
bool MayClose(const Json& schema) {
  const auto listed = schema.find("properties");
  if (listed == schema.end() || !listed->is_object() || listed->empty()) return false;
  for (const char* const said : {"additionalProperties", "patternProperties", "minProperties"}) {
    if (schema.contains(said)) return false;
  }
  const auto required = schema.find("required");
  if (required == schema.end() || !required->is_array()) return true;
  return absl::c_all_of(*required, [&](const Json& name) {
    return name.is_string() && listed->contains(name.get<std::string>());
  });
}

bool Close(Json& schema) {
  if (!schema.is_object()) return false;
  bool changed = false;
  VisitParts(schema, [&](Json& part) { changed |= Close(part); });
  if (!MayClose(schema)) return changed;
  schema["additionalProperties"] = false;
  return true;
}

}  // namespace

std::string ClosedSchema(const std::string& schema) {
  Json json = Json::parse(schema, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !IsOfOne(json, 0) || !Close(json)) return schema;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace reprise
