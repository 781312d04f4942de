#include "server/text/closed_schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using OrderedSchema = nlohmann::ordered_json;

TEST(ClosedSchemaTest, ObjectsHaveTheListedPropertiesAlone) {
  const OrderedSchema closed = OrderedSchema::parse(ClosedSchema(R"({
      "type": "object", "required": ["a"],
      "properties": {
        "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"$ref": "#/$defs/n"}}}},
        "c": {"anyOf": [{"type": "null"}, {"properties": {"d": true}}]}},
      "$defs": {"n": {"properties": {"next": {"allOf": [{"$ref": "#/$defs/n"}]}}}}})"));
  EXPECT_EQ(closed["additionalProperties"], false);
  EXPECT_EQ(closed["properties"]["a"]["items"]["additionalProperties"], false);
  EXPECT_EQ(closed["properties"]["c"]["anyOf"][1]["additionalProperties"], false);
  EXPECT_EQ(closed["$defs"]["n"]["additionalProperties"], false);
}

TEST(ClosedSchemaTest, OrderAndNumbersStay) {
  EXPECT_EQ(
      ClosedSchema(R"({"properties":{"z":{"const":0.1},"a":{"minimum":-5}}})"),
      R"({"properties":{"z":{"const":0.1},"a":{"minimum":-5}},"additionalProperties":false})");
}

TEST(ClosedSchemaTest, WhatSaysMoreOfPropertiesStays) {
  for (
      const char* const schema : {
          R"({"type":"object"})",
          R"({"properties":{}})",
          R"({"properties":{"a":{}},"additionalProperties":{"type":"integer"}})",
          R"({"properties":{"a":{}},"additionalProperties":true})",
          R"({"properties":{"a":{}},"patternProperties":{"^x":{}}})",
          R"({"properties":{"a":{}},"minProperties":2})",
          R"({"properties":{"a":{}},"required":["b"]})",
          R"({"properties":{"a":{}},"anyOf":[{"properties":{"b":{}}}]})",
          R"({"properties":{"a":{}},"$ref":"#/$defs/b"})",
          R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})",
          R"({"properties":{"a":{}},"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}})",
          R"({"const":{"properties":{"a":{}}}})",
          R"([{"properties":{"a":{}}}])",
          "true",
          "{\"properties\":{\"a\":",
      }) {
    EXPECT_EQ(ClosedSchema(schema), schema);
  }
}

TEST(ClosedSchemaTest, ADeepSchemaStays) {
  std::string deep = R"({"properties":{"a":{}}})";
  std::string begin, end;
  for (int i = 0; i < 100000; ++i) {
    begin += "{\"items\":";
    end += "}";
  }
  deep = begin + deep + end;
  EXPECT_EQ(ClosedSchema(deep), deep);
}

}  // namespace
}  // namespace reprise
