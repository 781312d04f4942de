#include "client/cli/table.h"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

TEST(TableTest, ColumnsAreAlignedAndLinesEndWithoutSpaces) {
  Table table({{"name"}, {"count", Table::Align::kRight}, {"note"}});
  table.AddRow({"a", "1", ""});
  table.AddRow({"longer", "1 000", "x"});
  EXPECT_EQ(table.Text(),
            "name    count  note\n"
            "------  -----  ----\n"
            "a           1\n"
            "longer  1 000  x\n");
}

TEST(TableTest, WidthCountsCharactersNotBytes) {
  Table table({{"é"}, {"b"}});
  table.AddRow({"x…", "1"});
  EXPECT_EQ(table.Text(),
            "é   b\n"
            "--  -\n"
            "x…  1\n");
}

TEST(TextTest, NumbersAreReadable) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1234567), "1 234 567");
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1536), "1.5 KiB");
  EXPECT_EQ(Bytes(uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(Fixed(-0.001, 2), "0.00");
  EXPECT_EQ(Fixed(-0.01, 2), "-0.01");
  EXPECT_EQ(Seconds(0.0125), "12.50 ms");
  EXPECT_EQ(Percent(1, 8), "12.5 %");
  EXPECT_EQ(Percent(1, 0), "-");
}

TEST(TextTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Shorten("abc", 3), "abc");
  EXPECT_EQ(Shorten("abcd", 3), "ab…");
  EXPECT_EQ(Shorten("äöüß", 3), "äö…");
}

}  // namespace
}  // namespace reprise::cli
