#include "runtime/json/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace reprise {
namespace {

TEST(JsonWriterTest, MembersStandInTheirOrderAndEmptyBracketsStayEmpty) {
  JsonWriter json(JsonForm::kIndented);
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
  JsonWriter json(JsonForm::kIndented);
  json.Value("a\"b\\c\nd\te\x01\xff");
  EXPECT_EQ(json.Take(), "\"a\\\"b\\\\c\\nd\\te\\\\x01\\\\xff\"\n");
}

TEST(JsonWriterTest, NumbersThatJsonHasNotAreNull) {
  JsonWriter json;
  json.Array([&] {
    json.Value(std::numeric_limits<double>::infinity());
    json.Value(std::numeric_limits<float>::quiet_NaN());
  });
  EXPECT_EQ(json.Take(), "[null,null]");
}

TEST(JsonWriterTest, CompactJsonHasNoWhiteSpace) {
  JsonWriter json;
  json.Object([&] {
    json.List("sizes", std::vector<int64_t>{1, -2});
    json.List("vector", std::vector<float>{0.1f, 2, 1e-9f});
    json.Object("usage", [&] {
      json.Member("none", nullptr);
      json.Member("raw", RawJson{"1.50"});
    });
    json.Member("stop", std::optional<std::string>());
    json.Member("text", std::optional<std::string>("a"));
    json.Key("data");
    json.Raw([](std::string& text) { text += "[1,2]"; });
    json.Array("empty", [] {});
  });
  EXPECT_EQ(json.Take(),
            "{\"sizes\":[1,-2],\"vector\":[0.1,2,1e-09],\"usage\":{\"none\":null,\"raw\":1.50},"
            "\"stop\":null,\"text\":\"a\",\"data\":[1,2],\"empty\":[]}");
}

TEST(JsonWriterTest, CompactTextsAreExactButForBytesThatAreNoUtf8) {
  EXPECT_EQ(JsonText("größe 日本 😀\x7f"), "\"größe 日本 😀\x7f\"");
  EXPECT_EQ(JsonText(absl::string_view("\"\\\b\f\n\r\t\0\x1f", 9)),
            "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\"");
  EXPECT_EQ(JsonText("a\xff\xfe z"), "\"a\ufffd\ufffd z\"");
  EXPECT_EQ(JsonText("\xe2\x82"), "\"\ufffd\"") << "a character that is cut short is one";
  EXPECT_EQ(JsonText("\xe2\x82z\xc3\xa9"), "\"\ufffdzé\"");
  EXPECT_EQ(JsonText("\xe0\x80"), "\"\ufffd\ufffd\"") << "overlong";
}

TEST(JsonWriterTest, ErrorsOfAPartAreReturnedAndBracketsAreClosed) {
  JsonWriter json;
  const absl::Status status = json.Object([&]() -> absl::Status {
    return json.Array("data", [] { return absl::InvalidArgumentError("no number"); });
  });
  EXPECT_EQ(status.message(), "no number");
  EXPECT_EQ(json.Take(), "{\"data\":[]}");
}

}  // namespace
}  // namespace reprise
