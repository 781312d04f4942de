// Nodes that pass over padding by numbers that a request's numbers may reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/certify/axis_flow.h"
#include "tests/runtime/certify/flow_graphs.h"

namespace reprise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kFewTokens = 19, kManyTokens = 23;

AxisFlowOptions WithGuards() {
  return {.axis = "tokens",
          .small_size = kFewTokens,
          .large_size = kManyTokens,
          .guards = {{"mask", 0}, {"ids", 0}, {"x", 0}},
          .masks = {"mask"}};
}

AxisFinding FindIn(const std::string& body, const AxisFlowOptions& options = WithGuards()) {
  return FindMixing(GraphAt(body, kFewTokens), GraphAt(body, kManyTokens), options);
}

// Scores of 4 heads and as many queries as keys, a condition `keep` of keys, and the keys that it
// hides.
std::string HiddenScores(const std::string& keep, const std::string& low) {
  return R"(
  input %queries: f32[2, 4, 7, 8]
  input %keys: f32[2, 4, 8, $S]
  input %ids: i64[2, $S]
  input %mask: i64[2, $S]
  input %x: f32[2, $S, 8]
  const %low: f32[] = {)" +
         low + R"(}
  const %middle: i64[2] = {1, 2}
  const %last: i64[1] = {2}
  const %none: i64[] = {0}
  const %three: i64[] = {3}
  const %loud: f32[] = {0.5}
  %scores: ? = MatMul(%queries, %keys)
  %counts: ? = Cast(%mask) {to = 9})" +
         keep + R"(
  %wide: ? = Unsqueeze(%keep, %middle)
  %hidden: ? = Where(%wide, %scores, %low)
  %y: ? = Softmax(%hidden) {axis = -1} @softmax)";
}

TEST(AxisShallowTest, MasksOfClientsHideNoMoreThanTheySay) {
  const AxisFinding finding = FindIn(HiddenScores("\n  %keep: ? = Identity(%counts)", "-1e9"));
  EXPECT_TRUE(finding.proved()) << finding.how;
  EXPECT_THAT(finding.shallow, IsEmpty());
}

TEST(AxisShallowTest, IdsThatArePaddingHideAsAMaskDoes) {
  const AxisFinding finding =
      FindIn(HiddenScores("\n  %pad: ? = Equal(%ids, %none)\n  %keep: ? = Not(%pad)", "-1e9"));
  EXPECT_TRUE(finding.proved()) << finding.how;
  EXPECT_THAT(finding.shallow, IsEmpty());
}

TEST(AxisShallowTest, IdsThatArePaddingAndAMaskHideTogether) {
  const AxisFinding finding = FindIn(HiddenScores(R"(
  %pad: ? = Equal(%ids, %none)
  %real: ? = Not(%pad)
  %keep: ? = And(%real, %counts))",
                                                  "-1e9"));
  EXPECT_TRUE(finding.proved()) << finding.how;
  EXPECT_THAT(finding.shallow, IsEmpty());
  const std::map<std::string, CountingPlaces> both = {{"ids", CountingPlaces::kOne},
                                                      {"mask", CountingPlaces::kOne}};
  EXPECT_EQ(finding.needs.together, both);
}

struct HidingCase {
  const char* name;
  const char* keep;
};

const HidingCase kHidingData[] = {
    {"Ids", "\n  %word: ? = Greater(%ids, %three)\n  %keep: ? = And(%word, %counts)"},
    {"Energy", R"(
  %squares: ? = Mul(%x, %x)
  %energy: ? = ReduceSum(%squares, %last) {keepdims = 0}
  %heard: ? = Greater(%energy, %loud)
  %keep: ? = And(%heard, %counts))"},
};

class DataHidesTest : public testing::TestWithParam<HidingCase> {};

INSTANTIATE_TEST_SUITE_P(Data, DataHidesTest, testing::ValuesIn(kHidingData),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(DataHidesTest, EveryKeyOfAQueryAsItHidesPadding) {
  const AxisFinding finding = FindIn(HiddenScores(GetParam().keep, "-1e9"));
  EXPECT_TRUE(finding.proved()) << finding.how;
  EXPECT_EQ(finding.shallow,
            "node 'softmax' (Softmax) normalises, where data may hide every key of a query as it "
            "hides padding, over tokens");
}

TEST_P(DataHidesTest, NothingMoreDeeplyThanMinusInfinity) {
  EXPECT_THAT(FindIn(HiddenScores(GetParam().keep, "-inf")).shallow, IsEmpty());
}

// The number is added to scores.
std::string AddedLow(const std::string& low, const std::string& op) {
  return R"(
  input %x: f32[2, $S]
  input %mask: i64[2, $S]
  const %low: f32[] = {)" +
         low + R"(}
  const %one: f32[] = {1}
  const %dim: i64[1] = {1}
  %counts: ? = Cast(%mask) {to = 1}
  %off: ? = Sub(%one, %counts)
  %below: ? = Mul(%off, %low)
  %sum: ? = Add(%x, %below)
  %y: ? = )" +
         op;
}

TEST(AxisShallowTest, WeakMasksAreReachedByNumbersOfRequests) {
  for (const char* op : {"ReduceMax(%sum, %dim) @look", "Softmax(%sum) {axis = 1} @look",
                         "ReduceLogSumExp(%sum, %dim) @look"}) {
    for (const char* low : {"-1000", "-10000", "-65504"}) {
      EXPECT_THAT(FindIn(AddedLow(low, op)).shallow, HasSubstr("node 'look'")) << op << " " << low;
    }
  }
}

TEST(AxisShallowTest, NumbersThatClientsSendMayLieBelowAnyMask) {
  const AxisFinding softmax = FindIn(AddedLow("-1e9", "Softmax(%sum) {axis = 1} @look"));
  EXPECT_TRUE(softmax.proved()) << softmax.how;
  EXPECT_THAT(softmax.shallow, HasSubstr("node 'look'"));
  for (const char* op : {"ReduceMax(%sum, %dim) @look", "ReduceLogSumExp(%sum, %dim) @look"}) {
    EXPECT_EQ(FindIn(AddedLow("-1e9", op)).verdict, AxisFinding::Verdict::kMixes) << op;
  }
}

TEST(AxisShallowTest, WhatLiesBeforeANodeThatMixesIsNamedAsWell) {
  const std::string body =
      AddedLow("-10000", "Softmax(%sum) {axis = 1} @look") + "\n  %s: ? = ReduceMax(%x, %dim) @mix";
  const AxisFinding finding = FindIn(body);
  EXPECT_EQ(finding.verdict, AxisFinding::Verdict::kMixes);
  EXPECT_THAT(finding.shallow, HasSubstr("node 'look'"));
}

}  // namespace
}  // namespace reprise
