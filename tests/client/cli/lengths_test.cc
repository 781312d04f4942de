#include "client/cli/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/temp_folder.h"

namespace reprise::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

std::vector<int64_t> Draw(absl::string_view text, size_t count, uint64_t seed = 1) {
  const auto lengths = Lengths::Parse(text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  return lengths.ok() ? lengths->Draw(count, seed) : std::vector<int64_t>();
}

TEST(LengthsTest, SameSeedGivesSameLengthsAndAnotherSeedOthers) {
  EXPECT_EQ(Draw("uniform:1-128", 100, 7), Draw("uniform:1-128", 100, 7));
  EXPECT_NE(Draw("uniform:1-128", 100, 7), Draw("uniform:1-128", 100, 8));
}

TEST(LengthsTest, UniformReachesBothEndsAndNothingBeyond) {
  const auto lengths = Draw("uniform:3-5", 200);
  EXPECT_THAT(lengths, Each(AllOf(Ge(3), Le(5))));
  for (int64_t length : {3, 4, 5}) EXPECT_GT(std::count(lengths.begin(), lengths.end(), length), 0);
}

TEST(LengthsTest, LognormalHasItsMedianAndIsCut) {
  auto lengths = Draw("lognormal:40,0.7,8,256", 10001);
  EXPECT_THAT(lengths, Each(AllOf(Ge(8), Le(256))));
  std::sort(lengths.begin(), lengths.end());
  EXPECT_NEAR(static_cast<double>(lengths[5000]), 40, 2);
  EXPECT_EQ(lengths.front(), 8);
  EXPECT_EQ(lengths.back(), 256);
}

TEST(LengthsTest, BimodalKeepsItsShare) {
  const auto lengths = Draw("bimodal:16,200,0.8", 10000);
  EXPECT_NEAR(static_cast<double>(std::count(lengths.begin(), lengths.end(), 16)), 8000, 200);
  EXPECT_EQ(std::count(lengths.begin(), lengths.end(), 16) +
                std::count(lengths.begin(), lengths.end(), 200),
            10000);
}

TEST(LengthsTest, FileIsRepeatedInOrder) {
  const TempFolder folder;
  const std::string path = folder.Write("lengths.txt", "5\n\n 9 \n");
  EXPECT_THAT(Draw("file:" + path, 5), ElementsAre(5, 9, 5, 9, 5));
}

TEST(LengthsTest, WrongTextNamesTheWrongPart) {
  EXPECT_THAT(Lengths::Parse("uniform:1").status().message(), HasSubstr("1 numbers, not 2"));
  EXPECT_THAT(Lengths::Parse("uniform:a-9").status().message(), HasSubstr("'a' is not a number"));
  EXPECT_THAT(Lengths::Parse("uniform:0-9").status().message(), HasSubstr("from 0 to 9"));
  EXPECT_THAT(Lengths::Parse("normal:1,2").status().message(), HasSubstr("is not a distribution"));
  EXPECT_THAT(Lengths::Parse("bimodal:1,2,3").status().message(), HasSubstr("share"));
  EXPECT_EQ(Lengths::Parse("file:/nonexistent/lengths").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(LengthsTest, WrongLineOfFileIsNamed) {
  const TempFolder folder;
  const std::string path = folder.Write("bad_lengths.txt", "5\n0\n");
  EXPECT_THAT(Lengths::Parse("file:" + path).status().message(),
              HasSubstr("bad_lengths.txt:2: '0' is not a length"));
}

}  // namespace
}  // namespace reprise::cli
