#include "runtime/bucket/size_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SizeRangeTest, EachPartIsRead) {
  const auto range = ParseSizeRange(" min 8,max 512, multiple 8 , usual 128");
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->usual, 128);
  EXPECT_EQ(range->Text(), "8 to 512 in multiples of 8");
  for (const int64_t size : {8, 128, 512}) EXPECT_TRUE(range->Allows(size)) << size;
  for (const int64_t size : {0, 4, 9, 513, 520}) EXPECT_FALSE(range->Allows(size)) << size;
  EXPECT_EQ(ParseSizeRange("max 77")->Text(), "at most 77");
  EXPECT_EQ(ParseSizeRange("min 3")->Text(), "at least 3");
}

TEST(SizeRangeTest, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "''"},
      {"8..512", "'8..512'"},
      {"min 8, maximum 9", "'maximum 9'"},
      {"min 0", "'min 0'"},
      {"min 8, min 9", "min twice"},
      {"min 9, max 8", "min 9, which is above max 8"},
      {"min 9, max 15, multiple 8", "no multiple of 8 from 9 to 15"},
      {"max 100, usual 128", "usual 128, but allows at most 100"},
      {"multiple 8, usual 12", "usual 12"}};
  for (const auto& [text, culprit] : cases) {
    const auto range = ParseSizeRange(text);
    ASSERT_FALSE(range.ok()) << text;
    EXPECT_THAT(std::string(range.status().message()), HasSubstr(culprit));
  }
}

TEST(SizeRangeTest, BucketsAreCutToIt) {
  const std::vector<int64_t> sizes = {16, 32, 64, 128, 256, 512};
  EXPECT_THAT(ParseSizeRange("max 100")->Cut(sizes), ElementsAre(16, 32, 64, 100));
  EXPECT_THAT(ParseSizeRange("min 40, max 300, multiple 30, usual 90")->Cut(sizes),
              ElementsAre(60, 90, 150, 270, 300));
  EXPECT_THAT(ParseSizeRange("min 600")->Cut(sizes), ElementsAre(600));
  EXPECT_THAT(ParseSizeRange("usual 20")->Cut(sizes), ElementsAre(16, 20, 32, 64, 128, 256, 512));
}

}  // namespace
}  // namespace reprise
