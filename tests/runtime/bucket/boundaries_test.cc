#include "runtime/bucket/boundaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> RuleSizes(absl::string_view text) {
  const auto rule = ParseBoundaryRule(text);
  EXPECT_TRUE(rule.ok()) << rule.status().ToString();
  return rule.ok() ? rule->sizes : std::vector<int64_t>{};
}

std::string Error(absl::string_view text) {
  const auto rule = ParseBoundaryRule(text);
  EXPECT_EQ(rule.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(rule.status().message());
}

TEST(BoundaryRuleTest, RulesSayTheirSizes) {
  EXPECT_THAT(RuleSizes("16, 32,64"), ElementsAre(16, 32, 64));
  EXPECT_THAT(RuleSizes("linear:16,32,100"), ElementsAre(16, 48, 80, 100));
  EXPECT_THAT(RuleSizes("linear:128,128,512"), ElementsAre(128, 256, 384, 512));
  EXPECT_THAT(RuleSizes("exponential:16,2,100"), ElementsAre(16, 32, 64, 100));
  EXPECT_THAT(RuleSizes("exponential:10,1.5,50"), ElementsAre(10, 15, 23, 34, 50));
  EXPECT_THAT(RuleSizes("linear:7,1,7"), ElementsAre(7));
  EXPECT_THAT(RuleSizes("exponential:1,1.0000001,4"), ElementsAre(1, 2, 3, 4));
}

TEST(BoundaryRuleTest, RulesThatTrafficDecidesSayHowMany) {
  const auto kind = [](absl::string_view text) { return ParseBoundaryRule(text)->kind; };
  EXPECT_EQ(kind("auto"), BoundaryRule::Kind::kAuto);
  EXPECT_EQ(ParseBoundaryRule("auto")->most, 8);
  EXPECT_EQ(ParseBoundaryRule("auto:12")->most, 12);
  EXPECT_EQ(kind("percentile:5"), BoundaryRule::Kind::kPercentile);
  EXPECT_EQ(ParseBoundaryRule("percentile:5")->most, 5);
  EXPECT_TRUE(ParseBoundaryRule("percentile:5")->learns());
  EXPECT_FALSE(ParseBoundaryRule("16")->learns());
}

TEST(BoundaryRuleTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(Error("fast"), HasSubstr("'fast' is not a list of sizes"));
  EXPECT_THAT(Error(""), HasSubstr("'' is not a list"));
  EXPECT_THAT(Error("16,8"), HasSubstr("8 follows 16"));
  EXPECT_THAT(Error("16,x"), HasSubstr("'x' is not a size"));
  EXPECT_THAT(Error("0"), HasSubstr("'0' is not a size"));
  EXPECT_THAT(Error("linear:16,32"), HasSubstr("FIRST,STEP,LAST"));
  EXPECT_THAT(Error("linear:64,8,32"), HasSubstr("64 to 32"));
  EXPECT_THAT(Error("linear:1,1,100000"), HasSubstr("more than 256 sizes"));
  EXPECT_THAT(Error("exponential:16,1,64"), HasSubstr("factor of 1"));
  EXPECT_THAT(Error("exponential:1,1.0000001,100000"), HasSubstr("more than 256 sizes"));
  EXPECT_THAT(Error("exponential:1,nan,64"), HasSubstr("factor"));
  EXPECT_THAT(Error("percentile:0"), HasSubstr("'0' is not a number of buckets"));
  EXPECT_THAT(Error("auto:1000"), HasSubstr("'1000' is not a number of buckets"));
}

// numpy.unique(numpy.percentile(sizes, numpy.linspace(0, 100, k + 1)[1:], method="lower"))
TEST(PercentileBoundariesTest, AreThoseOfNumpy) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 101; ++i) sizes.push_back(i * i % 257);
  const auto seen = CountSizes(sizes);
  EXPECT_THAT(PercentileBoundaries(seen, 1), ElementsAre(256));
  EXPECT_THAT(PercentileBoundaries(seen, 3), ElementsAre(73, 159, 256));
  EXPECT_THAT(PercentileBoundaries(seen, 5), ElementsAre(42, 98, 140, 207, 256));
  EXPECT_THAT(PercentileBoundaries(seen, 7), ElementsAre(30, 61, 104, 136, 173, 225, 256));
  EXPECT_THAT(PercentileBoundaries(CountSizes(std::vector<int64_t>{9, 9, 9, 12}), 4),
              ElementsAre(9, 12));
  EXPECT_TRUE(PercentileBoundaries({}, 4).empty());
}

TEST(PowersOfTwoTest, SpanWhatWasSeen) {
  EXPECT_THAT(PowersOfTwo(CountSizes(std::vector<int64_t>{9, 100})), ElementsAre(16, 32, 64, 128));
  EXPECT_THAT(PowersOfTwo(CountSizes(std::vector<int64_t>{64})), ElementsAre(64));
}

}  // namespace
}  // namespace reprise
