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

TEST(SizeChoicesTest, APartOfAJoinEndsWhereTheSizesOfPartsSay) {
  constexpr absl::string_view kJoined = R"(
  const %two: i64[1] = {2}
  %places: ? = Range(%zero, %size, %one)
  %joined: ? = Concat(%places, %places) {axis = 0}
  %twice: ? = Concat(%x, %x) {axis = 1}
)";
  const Graph whole = Model(absl::StrCat(kJoined, R"(
  %table: ? = Cast(%joined) {to = 1}
  %y: ? = Add(%twice, %table)
)"),
                            "y");
  EXPECT_TRUE(Find(whole, 512).proved());
  const auto cut_from = [&](absl::string_view start) {
    return Model(absl::StrCat(kJoined, "  %cut: ? = Slice(%joined, ", start, R"(, %far, %first)
  %table: ? = Cast(%cut) {to = 1}
  %rest: ? = Slice(%twice, )",
                              start, R"(, %far, %second)
  %y: ? = Add(%rest, %table)
)"),
                 "y");
  };
  EXPECT_TRUE(Find(cut_from("%second"), 512).proved()) << "all sizes keep its end";
  EXPECT_EQ(Find(cut_from("%two"), 512).verdict, Verdict::kMixes) << "of a part of one place, none";
  // At sizes from 70 on it is all of the first part.
  const Graph beginning = Model(absl::StrCat(kJoined, R"(
  const %seventy: i64[1] = {70}
  %more: ? = Concat(%joined, %joined, %joined, %joined, %joined) {axis = 0}
  %begin: ? = Slice(%more, %first, %seventy, %first)
  %table: ? = Cast(%begin) {to = 1}
  %sum: ? = ReduceSum(%x, %second) {keepdims = 1}
  %y: ? = Add(%sum, %table)
)"),
                                "y");
  EXPECT_EQ(Find(beginning, 512).verdict, Verdict::kMixes);
  const Graph place = Model(absl::StrCat(kJoined, R"(
  %number: ? = Gather(%joined, %one) {axis = 0}
  %scale: ? = Cast(%number) {to = 1}
  %y: ? = Mul(%x, %scale)
)"),
                            "y");
  EXPECT_EQ(Find(place, 512).verdict, Verdict::kMixes);
}

TEST(SizeChoicesTest, RowsThatLieEndToEndAreAView) {
  constexpr absl::string_view kRows = R"(
  %places: ? = Range(%zero, %size, %one)
  %grid: ? = Expand(%places, %shape)
  %line: ? = Reshape(%grid, %minus)
  %flat: ? = Reshape(%x, %minus)
)";
  const Graph one = Model(absl::StrCat(kRows, R"(
  %table: ? = Cast(%line) {to = 1}
  %y: ? = Add(%flat, %table)
)"),
                          "y");
  EXPECT_TRUE(Find(one, 512).proved());
  EXPECT_TRUE(Find(one, 8, /*forms=*/false, /*position=*/0).proved());
  const Graph joined = Model(absl::StrCat(kRows, R"(
  %twice_size: ? = Add(%size, %size)
  %more: ? = Range(%zero, %twice_size, %one)
  %both: ? = Concat(%x, %x) {axis = 1}
  %sides: ? = Shape(%both)
  %wide: ? = Expand(%more, %sides)
  %wide_line: ? = Reshape(%wide, %minus)
  %lines: ? = Concat(%wide_line, %line) {axis = 0}
  %table: ? = Cast(%lines) {to = 1}
  %thrice: ? = Concat(%flat, %flat, %flat) {axis = 0}
  %y: ? = Add(%thrice, %table)
)"),
                             "y");
  EXPECT_TRUE(Find(joined, 512).proved());
  const Graph place = Model(absl::StrCat(kRows, R"(
  %number: ? = Gather(%line, %one) {axis = 0}
  %scale: ? = Cast(%number) {to = 1}
  %y: ? = Mul(%flat, %scale)
)"),
                            "y");
  EXPECT_EQ(Find(place, 512).verdict, Verdict::kMixes);
}

TEST(SizeChoicesTest, AResizedTableIsFixedAlongWhatItKeeps) {
  const Graph graph = Model(R"(
  %places: ? = Range(%zero, %size, %one)
  %grid: ? = Expand(%places, %shape)
  %grid_f: ? = Cast(%grid) {to = 1}
  %layers: ? = Unsqueeze(%grid_f, %first)
  %wide: ? = Concat(%x, %x) {axis = 1}
  %sides: ? = Shape(%wide)
  %to: ? = Concat(%second, %sides) {axis = 0}
  %resized: ? = Resize(%layers, _, _, %to) {coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor"}
  %table: ? = Squeeze(%resized, %first)
  %y: ? = Add(%wide, %table)
)",
                            "y");
  EXPECT_TRUE(Find(graph, 8, /*forms=*/false, /*position=*/0).proved()) << "rows stay rows";
  EXPECT_EQ(Find(graph, 512).verdict, Verdict::kMixes) << "columns are mixed";
}

TEST(SizeChoicesTest, TheShapeOfATableIsKnownWhateverItHolds) {
  const Graph graph = Model(R"(
  %places: ? = Range(%zero, %size, %one)
  %row: ? = Unsqueeze(%places, %first)
  %column: ? = Unsqueeze(%places, %second)
  %product: ? = MatMul(%column, %row)
  %sides: ? = Shape(%product)
  %length: ? = Gather(%sides, %one) {axis = 0}
  %again: ? = Range(%zero, %length, %one)
  %table: ? = Cast(%again) {to = 1}
  %y: ? = Add(%x, %table)
)",
                            "y");
  EXPECT_TRUE(Find(graph, 512).proved());
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
