#include "runtime/engine/metrics/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace reprise {
namespace {

TEST(JsonWriterTest, MembersStandInTheirOrderAndEmptyBracketsStayEmpty) {
  JsonWriter json;
  json.Object([&] {
    json.Member("name", "minilm");
    json.Member("count", uint64_t{18446744073709551615u});
    json.Member("share", 0.25);
    json.Member("ok", true);
    json.Key("sizes");
    json.Array([&] {
      json.Value(int64_t{-1});
      json.Object([] {});
    });
    json.Key("none");
    json.Array([] {});
  });
  EXPECT_EQ(json.Take(),
            "{\n  \"name\": \"minilm\",\n  \"count\": 18446744073709551615,\n  \"share\": 0.25,\n"
            "  \"ok\": true,\n  \"sizes\": [\n    -1,\n    {}\n  ],\n  \"none\": []\n}\n");
}

TEST(JsonWriterTest, TextsFromOutsideCannotEndTheirQuotes) {
  JsonWriter json;
  json.Value("a\"b\\c\nd\te\x01\xff");
  EXPECT_EQ(json.Take(), "\"a\\\"b\\\\c\\nd\\te\\\\x01\\\\xff\"\n");
}

TEST(JsonWriterTest, NumbersThatJsonHasNotAreNull) {
  JsonWriter json;
  json.Value(std::numeric_limits<double>::infinity());
  EXPECT_EQ(json.Take(), "null\n");
}

}  // namespace
}  // namespace reprise
