#include "server/rest/json_numbers.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cmath>

namespace reprise {
namespace {

TEST(JsonNumbersTest, WhatLibrariesWriteBecomesJson) {
  EXPECT_EQ(WithPlainNumbers("[NaN,Infinity, -Infinity,1]"),
            R"(["NaN","Infinity", "-Infinity",1])");
  EXPECT_EQ(WithPlainNumbers("[18446744073709551616,-9223372036854775809]"),
            "[18446744073709551616.0,-9223372036854775809.0]");
}

TEST(JsonNumbersTest, EverythingElseStays) {
  for (const std::string json :
       {"", "[18446744073709551615,-9223372036854775808,1e400,0.5]",
        R"({"NaN":"NaN, \"Infinity","a":"18446744073709551616\\"})", R"("NaN)", "\"\\", "Nan",
        "NaNs", "-", "[100000000000000000000e1]", "\xff\xfeNaN\xff"}) {
    const std::string wanted = json == "\xff\xfeNaN\xff" ? "\xff\xfe\"NaN\"\xff" : json;
    EXPECT_EQ(WithPlainNumbers(json), wanted);
  }
}

TEST(JsonNumbersTest, TheTextsAreNumbers) {
  simdjson::dom::parser parser;
  const auto number = [&](const char* json) {
    return OddNumber(parser.parse(simdjson::padded_string(std::string(json))));
  };
  EXPECT_TRUE(std::isnan(number(R"("NaN")").value()));
  EXPECT_EQ(number(R"("Infinity")"), INFINITY);
  EXPECT_EQ(number(R"("-Infinity")"), -INFINITY);
  EXPECT_EQ(number(R"("nan")"), std::nullopt);
  EXPECT_EQ(number("1"), std::nullopt);
}

}  // namespace
}  // namespace reprise
