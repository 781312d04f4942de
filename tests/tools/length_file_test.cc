#include "tools/files/length_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Lengths(absl::string_view text) {
  const auto lengths = ParseLengths(text, "x.csv");
  EXPECT_TRUE(lengths.ok()) << lengths.status().ToString();
  return lengths.value_or(std::vector<int64_t>{});
}

std::string LengthError(absl::string_view text) {
  return std::string(ParseLengths(text, "x.csv").status().message());
}

TEST(LengthFileTest, ALengthALine) {
  EXPECT_THAT(Lengths("12\n\n# comment\n 7 \r\n12"), ElementsAre(12, 7, 12));
}

TEST(LengthFileTest, ColumnsByNameOrPosition) {
  EXPECT_THAT(Lengths("5,2\n7,1\n"), ElementsAre(5, 5, 7));
  EXPECT_THAT(Lengths("id,Length\n1,5\n2,7\n"), ElementsAre(5, 7));
  EXPECT_THAT(Lengths("count,tokens\n3,5\n1,7\n"), ElementsAre(5, 5, 5, 7));
  EXPECT_THAT(Lengths("\"length\"\n\"5\"\n"), ElementsAre(5));
}

TEST(LengthFileTest, WhatSpreadsheetsWriteIsRead) {
  EXPECT_THAT(Lengths("\xEF\xBB\xBF"
                      "5\r\n9\r\n"),
              ElementsAre(5, 9));
  EXPECT_THAT(Lengths("text,len\n\"a, b\",5\n\"c\",7\n"), ElementsAre(5, 7));
  EXPECT_THAT(Lengths("length,count\n5,0\n7,2\n"), ElementsAre(7, 7));
}

TEST(LengthFileTest, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_THAT(LengthError("5\nx\n"), HasSubstr("x.csv:2: 'x' is not a length"));
  EXPECT_THAT(LengthError("5\n0\n"), HasSubstr("x.csv:2: '0' is not a length"));
  EXPECT_THAT(LengthError("\x01\xff"), HasSubstr("x.csv:1: '\\x01\\xff' is not a length"));
  EXPECT_THAT(LengthError("5,1\n6,-1\n"), HasSubstr("x.csv:2: '-1' is not a count"));
  EXPECT_THAT(LengthError("a,length\n1\n"), HasSubstr("has 1 columns, the length is in column 2"));
  EXPECT_THAT(LengthError("length\n"), HasSubstr("no length"));
  EXPECT_THAT(LengthError("5,16777216\n5,16777216\n5,16777216\n"), HasSubstr("more than"));
  EXPECT_EQ(ReadLengths("/").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadLengths("/nowhere/x").status().code(), absl::StatusCode::kNotFound);
}

TEST(LengthFileTest, RemarksOfADynamicityTableAreNoShapes) {
  const auto shapes = ParseShapes(
      "model,version,ids,requests,recent,larger,outside\nbert,1,1x12,3,1,0,2\n", "x.csv");
  ASSERT_TRUE(shapes.ok()) << shapes.status().ToString();
  EXPECT_THAT(shapes->inputs, ElementsAre("ids"));
  EXPECT_THAT(shapes->rows[0][0], ElementsAre(1, 12));
  EXPECT_THAT(shapes->counts, ElementsAre(3));
}

TEST(LengthFileTest, ShapesByInput) {
  const auto shapes = ParseShapes("ids,mask,count\n1x12,1x12,3\n2x7,2x7,1\n", "x.csv");
  ASSERT_TRUE(shapes.ok()) << shapes.status().ToString();
  EXPECT_THAT(shapes->inputs, ElementsAre("ids", "mask"));
  ASSERT_EQ(shapes->rows.size(), 2u);
  EXPECT_THAT(shapes->rows[1][0], ElementsAre(2, 7));
  EXPECT_THAT(shapes->counts, ElementsAre(3, 1));
  const auto plain = ParseShapes("1x12\n[2;7]\n", "x");
  ASSERT_TRUE(plain.ok()) << plain.status().ToString();
  EXPECT_THAT(plain->rows[1][0], ElementsAre(2, 7));
  EXPECT_THAT(std::string(ParseShapes("1x12\n1xy\n", "x").status().message()),
              HasSubstr("x:2: '1xy' is not a shape"));
  EXPECT_THAT(std::string(ParseShapes("1x12,1\n1x3\n", "x").status().message()),
              HasSubstr("x:2: has 1 columns, the first line 2"));
}

}  // namespace
}  // namespace reprise::cli
