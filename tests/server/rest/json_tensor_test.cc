#include "server/rest/json_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cmath>
#include <limits>
#include <random>

#include "runtime/graph/tensor.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> Elements(const std::string& json, const std::string& datatype,
                                     std::vector<int64_t> shape) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(json);
  simdjson::dom::element root;
  EXPECT_EQ(parser.parse(padded).get(root), simdjson::SUCCESS) << json;
  std::string bytes;
  const absl::Status status = AppendElements(root, datatype, shape, bytes);
  if (!status.ok()) return status;
  return bytes;
}

template <typename T>
std::string Bytes(std::vector<T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string Json(const std::string& bytes, const std::string& datatype) {
  std::string json;
  AppendJson(bytes, datatype, json);
  return json;
}

TEST(JsonTensorTest, FlatAndNestedListsAreTheSame) {
  const std::string wanted = Bytes<int32_t>({1, -2, 3, 4, 5, 6});
  EXPECT_EQ(Elements("[1,-2,3,4,5,6]", "INT32", {2, 3}).value(), wanted);
  EXPECT_EQ(Elements("[[1,-2,3],[4,5,6]]", "INT32", {2, 3}).value(), wanted);
  EXPECT_EQ(Elements("[[],[]]", "INT32", {2, 0}).value(), "");
  EXPECT_EQ(Elements("[]", "INT32", {0, 3}).value(), "");
  EXPECT_EQ(Elements("[7]", "INT32", {}).value(), Bytes<int32_t>({7}));
}

TEST(JsonTensorTest, NestedElementsHaveTheListsOfTheirShapeAndNoOthers) {
  const auto nested = [](const std::string& json, const std::string& datatype,
                         std::vector<int64_t> shape) -> absl::StatusOr<std::string> {
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(json);
    simdjson::dom::element root;
    EXPECT_EQ(parser.parse(padded).get(root), simdjson::SUCCESS) << json;
    std::string bytes;
    const absl::Status status = AppendNestedElements(root, datatype, shape, bytes);
    if (!status.ok()) return status;
    return bytes;
  };
  EXPECT_EQ(nested("7", "INT32", {}).value(), Bytes<int32_t>({7}));
  EXPECT_EQ(nested("[[1,2],[3,4]]", "INT32", {2, 2}).value(), Bytes<int32_t>({1, 2, 3, 4}));
  EXPECT_FALSE(nested("[1,2,3,4]", "INT32", {2, 2}).ok());
  EXPECT_EQ(nested(R"([{"b64":"AAE="},"a"])", "BYTES", {2}).value(),
            std::string("\2\0\0\0\0\1\1\0\0\0a", 11));
  EXPECT_THAT(nested(R"([{"b64":"AAE"}])", "BYTES", {1}).value(), testing::SizeIs(6));
  EXPECT_FALSE(nested(R"([{"b64":"?"}])", "BYTES", {1}).ok());
  EXPECT_FALSE(nested(R"([{"b65":"AAE="}])", "BYTES", {1}).ok());
  EXPECT_FALSE(nested(R"([{"b64":"AAE="}])", "INT8", {1}).ok());
  EXPECT_FALSE(Elements(R"([{"b64":"AAE="}])", "BYTES", {1}).ok()) << "Triton's protocol has none";
}

TEST(JsonTensorTest, NestedJsonHasTheListsOfItsShape) {
  const auto nested = [](const std::string& bytes, const std::string& datatype,
                         std::vector<int64_t> shape) {
    std::string json;
    AppendNestedJson(bytes, datatype, shape, json);
    return json;
  };
  EXPECT_EQ(nested(Bytes<int16_t>({1, 2, 3, 4, 5, 6}), "INT16", {1, 3, 2}),
            "[[[1,2],[3,4],[5,6]]]");
  EXPECT_EQ(nested(Bytes<float>({1.5}), "FP32", {}), "1.5");
  EXPECT_EQ(nested("", "FP32", {2, 0}), "[[],[]]");
  EXPECT_EQ(nested("", "FP32", {0, 2}), "[]");
  const std::string texts("\1\0\0\0a\0\0\0\0\2\0\0\0bc\1\0\0\0d", 20);
  EXPECT_EQ(nested(texts, "BYTES", {2, 2}), R"([["a",""],["bc","d"]])");
  EXPECT_EQ(nested(std::string("\2\0\0\0bc", 6), "BYTES", {}), R"("bc")");
}

TEST(JsonTensorTest, EveryDatatypeHasItsBytes) {
  EXPECT_EQ(Elements("[true,false,1]", "BOOL", {3}).value(), std::string("\1\0\1", 3));
  EXPECT_EQ(Elements("[-128]", "INT8", {1}).value(), Bytes<int8_t>({-128}));
  EXPECT_EQ(Elements("[255]", "UINT8", {1}).value(), Bytes<uint8_t>({255}));
  EXPECT_EQ(Elements("[-32768]", "INT16", {1}).value(), Bytes<int16_t>({-32768}));
  EXPECT_EQ(Elements("[65535]", "UINT16", {1}).value(), Bytes<uint16_t>({65535}));
  EXPECT_EQ(Elements("[4294967295]", "UINT32", {1}).value(), Bytes<uint32_t>({4294967295u}));
  EXPECT_EQ(Elements("[-9223372036854775808]", "INT64", {1}).value(),
            Bytes<int64_t>({std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(Elements("[18446744073709551615]", "UINT64", {1}).value(),
            Bytes<uint64_t>({std::numeric_limits<uint64_t>::max()}));
  EXPECT_EQ(Elements("[1.5,2]", "FP32", {2}).value(), Bytes<float>({1.5f, 2}));
  EXPECT_EQ(Elements("[0.1]", "FP64", {1}).value(), Bytes<double>({0.1}));
  EXPECT_EQ(Elements("[1.5]", "FP16", {1}).value(), Bytes<uint16_t>({FloatToHalf(1.5f)}));
  EXPECT_EQ(Elements("[1.5]", "BF16", {1}).value(), Bytes<uint16_t>({FloatToBFloat16(1.5f)}));
  EXPECT_EQ(Elements(R"(["ab",""])", "BYTES", {2}).value(), std::string("\2\0\0\0ab\0\0\0\0", 10));
}

// The value that a number is rounded to counts, not its digits: the shortest digits of the largest
// one are above it.
TEST(JsonTensorTest, TheLargestNumbersAreInRange) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(Elements("[3.4028235e38,-3.4028235e+38]", "FP32", {2}).value(),
            Bytes<float>({largest, -largest}));
  EXPECT_EQ(Elements(Json(Bytes<float>({largest}), "FP32"), "FP32", {1}).value(),
            Bytes<float>({largest}));
  EXPECT_EQ(Elements("[65519]", "FP16", {1}).value(), Bytes<uint16_t>({FloatToHalf(65504)}));
  EXPECT_THAT(Elements("[1, 3.4028236e38]", "FP32", {2}).status().message(),
              HasSubstr("element 1"));
  EXPECT_THAT(Elements("[65520]", "FP16", {1}).status().message(), HasSubstr("range of FP16"));
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Elements(R"(["Infinity","-Infinity"])", "FP32", {2}).value(),
            Bytes<float>({infinite, -infinite}));
}

TEST(JsonTensorTest, WhatDoesNotFitIsRefusedByItsPosition) {
  const auto error = [](const std::string& json, const std::string& datatype,
                        std::vector<int64_t> shape) {
    return std::string(Elements(json, datatype, std::move(shape)).status().message());
  };
  EXPECT_THAT(error("[1,300]", "UINT8", {2}), HasSubstr("element 1 is 300, out of the range"));
  EXPECT_THAT(error("[-1]", "UINT64", {1}), HasSubstr("out of the range of UINT64"));
  EXPECT_THAT(error("[1.5]", "INT32", {1}), HasSubstr("element 0 is 1.5, no INT32"));
  EXPECT_THAT(error("[1e39]", "FP32", {1}), HasSubstr("out of the range of FP32"));
  EXPECT_THAT(error("[70000]", "FP16", {1}), HasSubstr("out of the range of FP16"));
  EXPECT_THAT(error("[1,\"a\"]", "FP32", {2}), HasSubstr("element 1 is \"a\", no FP32"));
  EXPECT_THAT(error("[null]", "FP32", {1}), HasSubstr("null"));
  EXPECT_THAT(error("[2]", "BOOL", {1}), HasSubstr("no BOOL"));
  EXPECT_THAT(error("[1]", "BYTES", {1}), HasSubstr("no BYTES"));
  EXPECT_THAT(error("[1]", "FP31", {1}), HasSubstr("FP31"));
  EXPECT_THAT(error("[1,2]", "INT32", {3}), HasSubstr("has 2 elements, not 3"));
  EXPECT_THAT(error("[1,2,3,4]", "INT32", {3}), HasSubstr("more than 3"));
  EXPECT_THAT(error("[[1,2],[3]]", "INT32", {2, 2}), HasSubstr("has 1 elements, not 2"));
  EXPECT_THAT(error("[[1,2,3]]", "INT32", {3}), HasSubstr("element 0 is [1,2,3]"));
  EXPECT_THAT(error("[[1],2]", "INT32", {2, 1}), HasSubstr("element 1 is 2, expected a list"));
  EXPECT_THAT(error("5", "INT32", {1}), HasSubstr("expected a list"));
  EXPECT_FALSE(Elements("[1]", "INT32", {int64_t{1} << 62, 8}).ok());
}

TEST(JsonTensorTest, NumbersAreTheShortestThatReadBackTheSame) {
  EXPECT_EQ(Json(Bytes<float>({0.1f, -0.0f, 1e20f, 3}), "FP32"), "[0.1,-0.0,1e+20,3]");
  EXPECT_EQ(Json(Bytes<float>({NAN, INFINITY, -INFINITY}), "FP32"), "[NaN,Infinity,-Infinity]");
  EXPECT_EQ(Json(Bytes<uint8_t>({1, 0}), "BOOL"), "[true,false]");
  EXPECT_EQ(Json(Bytes<int8_t>({-1, 65}), "INT8"), "[-1,65]");
  EXPECT_EQ(Json(std::string("\2\0\0\0a\"\1\0\0\0\xff", 11), "BYTES"),
            "[\"a\\\"\",\"\xEF\xBF\xBD\"]");
  EXPECT_EQ(Json("", "FP32"), "[]");
}

TEST(JsonTensorTest, FloatsOfAnyBitsComeBackTheSame) {
  std::mt19937 random(3);
  std::vector<float> values;
  while (values.size() < 5000) {
    const uint32_t bits = random();
    float value;
    memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) values.push_back(value);
  }
  const std::string bytes = Bytes(values);
  EXPECT_EQ(Elements(Json(bytes, "FP32"), "FP32", {5000}).value(), bytes);
}

}  // namespace
}  // namespace reprise
