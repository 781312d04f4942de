// Rows of a batch that nodes put and find by places: the walk at two sizes of the batch.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/certify/axis_flow.h"
#include "tests/runtime/certify/flow_graphs.h"

namespace reprise {
namespace {

constexpr int64_t kFewRows = 19, kManyRows = 23;

AxisFinding FindOverRows(const Graph& few, const Graph& many) {
  return FindMixing(
      few, many,
      {.axis = "tokens", .is_batch = true, .small_size = kFewRows, .large_size = kManyRows});
}

// Replaces elements 0 to 2 of each row; `place` gives the row's index in the table of rows.
AxisFinding FindMixingOfReplaced(const std::function<int64_t(int64_t)>& place) {
  const auto at = [&](int64_t size) {
    std::vector<std::string> places;
    for (int64_t row = 0; row < size; ++row) {
      for (int64_t i = 0; i < 3; ++i) places.push_back(absl::StrCat(place(row), ", ", i));
    }
    return GraphAt(absl::StrCat("  input %x: f32[$S, 8]\n  input %u: f32[$S, 3]\n"
                                "  const %at: i64[$S, 3, 2] = {",
                                absl::StrJoin(places, ", "),
                                "}\n  %once: ? = ScatterND(%x, %at, %u) @put\n"
                                "  %y: ? = ScatterND(%once, %at, %u)"),
                   size);
  };
  return FindOverRows(at(kFewRows), at(kManyRows));
}

TEST(AxisFlowBatchTest, WhatEachRowPutsInItselfMixesNoBatch) {
  EXPECT_EQ(FindMixingOfReplaced([](int64_t row) { return row; }).verdict, kUndecided);
  const AxisFinding other = FindMixingOfReplaced([](int64_t row) { return row == 1 ? 0 : row; });
  EXPECT_EQ(other.verdict, kMixes);
  EXPECT_EQ(MixingWords(other),
            "node 'put' (ScatterND) takes numbers that follow the size of tokens");
}

TEST(AxisFlowBatchTest, APlaceThatAllRowsShareMayNotFollowTheSizeOfTheBatch) {
  const auto found = [](int64_t less_than_size) {
    const auto at = [&](int64_t size) {
      std::vector<std::string> places;
      const int64_t shared = less_than_size > 0 ? size - less_than_size : 2;
      for (int64_t row = 0; row < size; ++row) places.push_back(absl::StrCat(row, ", ", shared));
      return GraphAt(
          absl::StrCat("  input %x: f32[$S, 32]\n  const %at: i64[$S, 2] = {",
                       absl::StrJoin(places, ", "), "}\n  %y: ? = GatherND(%x, %at) @find"),
          size);
    };
    return FindOverRows(at(kFewRows), at(kManyRows));
  };
  EXPECT_NE(found(0).verdict, kMixes);
  EXPECT_EQ(found(1).verdict, kMixes);
  EXPECT_EQ(MixingWords(found(1)),
            "node 'find' (GatherND) takes numbers that follow the size of tokens");
}

// Places to look along the last dim, for `inner` heads of each of a batch: `place(row, column)`.
template <typename Place>
AxisFinding FindAtPlaces(int64_t inner, Place place) {
  const auto at = [&](int64_t size) {
    std::vector<int64_t> places;
    for (int64_t row = 0; row < inner * size; ++row) {
      for (int64_t column = 0; column < 3; ++column) places.push_back(place(row, column));
    }
    return GraphAt(absl::StrCat(R"(
  input %x: f32[$S, )",
                                inner, R"(, 8]
  const %folded: i64[2] = {)",
                                inner * size,
                                R"(, 8}
  const %at: i64[)",
                                inner * size, ", 3] = {", absl::StrJoin(places, ", "), R"(}
  %rows: ? = Reshape(%x, %folded)
  %y: ? = GatherElements(%rows, %at) {axis = 1} @find)"),
                   size);
  };
  return FindOverRows(at(kFewRows), at(kManyRows));
}

TEST(AxisFlowBatchTest, AConstantThatHoldsTheSameForAllOfABatchFollowsNoSize) {
  const auto same = [](int64_t, int64_t column) { return 2 * column; };
  const auto by_row = [](int64_t row, int64_t column) { return (row + column) % 8; };
  for (const int64_t inner : {1, 2, 5}) {
    const AxisFinding found = FindAtPlaces(inner, same);
    EXPECT_NE(found.verdict, kMixes) << MixingWords(found);
    EXPECT_EQ(FindAtPlaces(inner, by_row).verdict, kMixes) << inner;
  }
}

}  // namespace
}  // namespace reprise
