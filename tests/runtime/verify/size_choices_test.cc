// Decisions of an axis's sizes in a model, as a reading with open sizes states them.
#include "runtime/verify/size_choices.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using Verdict = AxisFinding::Verdict;

// A model over x [batch, sequence], whose answer is `answer`. `body` may use the sizes `rows` and
// `size`, and the numbers in the list below.
Graph Model(absl::string_view body, absl::string_view answer) {
  return MustParse(absl::StrCat(R"(graph {
  input %x: f32[batch, sequence]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %four: i64[] = {4}
  const %thirty: i64[] = {30}
  const %hundred: i64[] = {100}
  const %two_f: f32[] = {2}
  const %limit_f: f32[] = {300}
  const %first: i64[1] = {0}
  const %second: i64[1] = {1}
  const %minus: i64[1] = {-1}
  const %late: i64[1] = {100}
  const %far: i64[1] = {9223372036854775807}
  %shape: ? = Shape(%x)
  %rows: ? = Gather(%shape, %zero) {axis = 0}
  %size: ? = Gather(%shape, %one) {axis = 0}
)",
                                body, "  output %", answer, "\n}"));
}

std::vector<ModelAxis> Axes(int64_t step = 1) {
  return {{.label = "batch", .symbol = "batch", .is_batch = true},
          {.label = "sequence", .symbol = "sequence", .step = step}};
}

AxisFinding Find(const Graph& graph, int64_t largest = 0, bool forms = false, size_t position = 1,
                 int64_t step = 1) {
  const std::vector<ModelAxis> axes = Axes(step);
  const SizeReadings readings(graph, axes);
  return FindSizeChoices(readings, position, largest, forms);
}

constexpr absl::string_view kTurn = R"(
  %other: ? = Neg(%x)
  %y: ? = Where(%is, %other, %x)
)";

TEST(SizeChoicesTest, AComparisonDecidesWhereSizesLieOnBothSidesOfIt) {
  const Graph graph = Model(absl::StrCat("  %is: ? = Less(%size, %hundred)\n", kTurn), "y");
  const AxisFinding found = Find(graph, 512);
  EXPECT_EQ(found.verdict, Verdict::kMixes);
  EXPECT_THAT(found.how, HasSubstr("decides by the size of sequence"));
  EXPECT_TRUE(Find(graph, 99).proved());
  EXPECT_TRUE(Find(graph, 0, /*forms=*/true, /*position=*/0).proved()) << "of the batch";
}

TEST(SizeChoicesTest, WholeFloatsAreComparedAsTheNumbersThatTheyAre) {
  const Graph graph = Model(absl::StrCat(R"(
  %size_f: ? = Cast(%size) {to = 1}
  %twice: ? = Mul(%size_f, %two_f)
  %rounded: ? = Floor(%twice)
  %is: ? = Greater(%rounded, %limit_f)
)",
                                         kTurn),
                            "y");
  EXPECT_EQ(Find(graph, 151).verdict, Verdict::kMixes);
  EXPECT_TRUE(Find(graph, 150).proved());
}

TEST(SizeChoicesTest, RemaindersAreChosenAndQuotientsAreSteps) {
  const Graph rest = Model(R"(
  %share: ? = Div(%size, %four)
  %whole: ? = Mul(%share, %four)
  %left: ? = Sub(%size, %whole)
  %count: ? = Reshape(%left, %second)
  %both: ? = Concat(%first, %first, %first, %count) {axis = 0}
  %y: ? = Pad(%x, %both)
)",
                           "y");
  EXPECT_EQ(Find(rest, 512).verdict, Verdict::kMixes);
  EXPECT_TRUE(Find(rest, 512, /*forms=*/false, /*position=*/1, /*step=*/4).proved());
  const Graph steps = Model(R"(
  %share: ? = Div(%size, %four)
  %count: ? = Reshape(%share, %second)
  %both: ? = Concat(%first, %first, %first, %count) {axis = 0}
  %y: ? = Pad(%x, %both)
)",
                            "y");
  EXPECT_EQ(Find(steps, 512).verdict, Verdict::kUndecided);
  EXPECT_TRUE(Find(steps, 3).proved()) << "it is 0 up to there";
}

TEST(SizeChoicesTest, TheLengthOfARangeThatEndsBeforeItsStartIsAChoice) {
  // At small sizes it is empty, and its count the constant 0.
  const Graph graph = Model(absl::StrCat(R"(
  %beyond: ? = Range(%thirty, %size, %one)
  %count: ? = Size(%beyond)
  %is: ? = Greater(%count, %zero)
)",
                                         kTurn),
                            "y");
  EXPECT_EQ(Find(graph, 512).verdict, Verdict::kMixes);
  EXPECT_TRUE(Find(graph, 29).proved());
}

TEST(SizeChoicesTest, ACutOfDataThatEndsBeforeItsStartIsAChoiceOnceItsShapeIsRead) {
  const Graph graph = Model(absl::StrCat(R"(
  %cut: ? = Slice(%x, %late, %far, %second)
  %left: ? = Size(%cut)
  %is: ? = Greater(%left, %zero)
)",
                                         kTurn),
                            "y");
  EXPECT_EQ(Find(graph, 512).verdict, Verdict::kMixes);
  EXPECT_TRUE(Find(graph, 99).proved());
}

TEST(SizeChoicesTest, FormsAreThoseThatAShapeRuleHadToDecide) {
  const Graph squeezed = Model("  %y: ? = Squeeze(%x)\n", "y");
  EXPECT_EQ(Find(squeezed, 512).verdict, Verdict::kUndecided);
  const Graph cut = Model("  %y: ? = Slice(%x, %late, %far, %second)\n", "y");
  EXPECT_TRUE(Find(cut, 512).proved());
  EXPECT_EQ(Find(cut, 512, /*forms=*/true).verdict, Verdict::kUndecided);
  EXPECT_TRUE(Find(cut, 99, /*forms=*/true).proved()) << "nothing is left at any of them";
  const Graph all_but_one = Model("  %y: ? = Slice(%x, %first, %minus, %second)\n", "y");
  EXPECT_TRUE(Find(all_but_one, 512, /*forms=*/true).proved());
}

TEST(SizeChoicesTest, ProductsOfTablesAreFixedAlongWhatTheyDoNotSum) {
  constexpr absl::string_view kTables = R"(
  %places: ? = Range(%zero, %size, %one)
  %row: ? = Unsqueeze(%places, %first)
  %column: ? = Unsqueeze(%places, %second)
)";
  const Graph outer = Model(absl::StrCat(kTables, R"(
  %product: ? = MatMul(%column, %row)
  %table: ? = Cast(%product) {to = 1}
  %y: ? = MatMul(%x, %table)
)"),
                            "y");
  EXPECT_TRUE(Find(outer, 512).proved());
  const Graph inner = Model(absl::StrCat(kTables, R"(
  %product: ? = MatMul(%row, %column)
  %table: ? = Cast(%product) {to = 1}
  %y: ? = Mul(%x, %table)
)"),
                            "y");
  EXPECT_EQ(Find(inner, 512).verdict, Verdict::kMixes);
}

TEST(SizeChoicesTest, PlacesOfOnesAreARange) {
  const Graph graph = Model(R"(
  %length: ? = Reshape(%size, %second)
  %ones: ? = ConstantOfShape(%length) {value = f32[1]{1}}
  %found: ? = NonZero(%ones)
  %places: ? = Cast(%found) {to = 1}
  %y: ? = Add(%x, %places)
)",
                            "y");
  EXPECT_TRUE(Find(graph, 512, /*forms=*/true).proved());
}

TEST(SizeChoicesTest, ProductsOfSizesAreBoundedByTheirCorners) {
  // 4 * rows * size is never below size, whatever the two are.
  const Graph graph = Model(absl::StrCat(R"(
  %tokens: ? = Mul(%rows, %size)
  %more: ? = Mul(%tokens, %four)
  %is: ? = Less(%more, %size)
)",
                                         kTurn),
                            "y");
  EXPECT_TRUE(Find(graph, 512).proved());
}

TEST(SizeChoicesTest, WhatTheBatchDecidesIsNotTheSequence) {
  const Graph graph = Model(absl::StrCat("  %is: ? = Equal(%rows, %four)\n", kTurn), "y");
  EXPECT_TRUE(Find(graph, 512).proved());
  EXPECT_EQ(Find(graph, 8, /*forms=*/false, /*position=*/0).verdict, Verdict::kMixes);
}

}  // namespace
}  // namespace reprise
