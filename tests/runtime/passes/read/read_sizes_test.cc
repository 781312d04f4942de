#include "runtime/passes/read/read_sizes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/testing/must_parse.h"
#include "tests/testing/shadow/shadow.h"

namespace reprise {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// A graph, and the result of a reading of it.
struct Read {
  Read(absl::string_view text, std::map<std::string, int64_t> axes) : graph(MustParse(text)) {
    auto read = ReadSizes(graph, {.axes = std::move(axes)});
    EXPECT_TRUE(read.ok()) << read.status();
    reading = *std::move(read);
  }
  std::string ShapeOf(absl::string_view name) const {
    return SizesText(*reading.values[static_cast<size_t>(graph.FindValue(name))].shape);
  }
  std::string ElementsOf(absl::string_view name) const {
    const SizeReading::Value& value = reading.values[static_cast<size_t>(graph.FindValue(name))];
    if (!value.known.has_value()) return "not known";
    return value.known->is_table() ? SizeText(*value.known->element)
                                   : SizesText(value.known->elements);
  }
  std::vector<std::string> Guards() const {
    std::vector<std::string> texts;
    for (const Guard& guard : reading.table->guards()) {
      texts.push_back(absl::StrCat(
          GuardText(guard), " by ",
          guard.origin < 0 ? "inputs" : graph.node(static_cast<NodeId>(guard.origin)).op));
    }
    return texts;
  }
  const Graph graph;
  SizeReading reading;
};

// 20 sizes of each of two axes, around the hints and far from them.
std::vector<Binding> Sizes(const std::string& first, const std::string& second) {
  std::vector<Binding> bindings = {{.axes = {{first, 3}, {second, 7}}}};
  for (int64_t i = 0; i < 20; ++i) {
    bindings.push_back({.axes = {{first, 1 + i % 5}, {second, i < 10 ? i : (i - 9) * 13}}});
  }
  return bindings;
}

std::string Difference(absl::string_view text, const std::vector<Binding>& bindings,
                       int64_t least_within) {
  ShadowCounts counts;
  std::string difference = ShadowDifference(MustParse(text), bindings, counts);
  EXPECT_GE(counts.within, least_within) << counts.ToString();
  return difference;
}

constexpr absl::string_view kHeads = R"(graph {
  input %x: f32[batch, sequence, 64]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %front: i64[1] = {0}
  const %rest: i64[2] = {4, 16}
  const %flat: i64[1] = {-1}
  %shape: ? = Shape(%x)
  %b: ? = Gather(%shape, %zero) {axis = 0}
  %s: ? = Gather(%shape, %one) {axis = 0}
  %b1: ? = Unsqueeze(%b, %front)
  %s1: ? = Unsqueeze(%s, %front)
  %target: ? = Concat(%b1, %s1, %rest) {axis = 0}
  %heads: ? = Reshape(%x, %target)
  %turned: ? = Transpose(%heads) {perm = [0, 2, 1, 3]}
  %back: ? = Transpose(%turned) {perm = [0, 2, 1, 3]}
  %line: ? = Mul(%b, %s)
  %line1: ? = Unsqueeze(%line, %front)
  %tokens_of: ? = Concat(%line1, %flat) {axis = 0}
  %tokens: ? = Reshape(%back, %tokens_of)
  output %turned
  output %tokens
})";

TEST(ReadSizesTest, ReshapesOfComputedShapesKeepTheirTerms) {
  const Read read(kHeads, {{"batch", 3}, {"sequence", 7}});
  EXPECT_EQ(read.ShapeOf("turned"), "[batch, 4, sequence, 16]");
  EXPECT_EQ(read.ShapeOf("tokens"), "[batch*sequence, 64]");
  EXPECT_EQ(read.ElementsOf("target"), "[batch, sequence, 4, 16]");
  EXPECT_EQ(Difference(kHeads, Sizes("batch", "sequence"), 10), "");
}

constexpr absl::string_view kStack = R"(graph {
  input %x: f32[batch, 3, sequence]
  param %w: f32[8, 3, 5] = p0
  param %v: f32[8, 8, 4] = p1
  %a: ? = Conv(%x, %w) {pads = [2, 2], strides = [2]}
  %b: ? = Conv(%a, %v) {strides = [2]}
  %p: ? = MaxPool(%b) {ceil_mode = 1, kernel_shape = [2], strides = [2]}
  output %p
})";

TEST(ReadSizesTest, WindowsWithStridesAreQuotients) {
  const Read read(kStack, {{"batch", 3}, {"sequence", 40}});
  EXPECT_EQ(read.ShapeOf("a"), "[batch, 8, floor((sequence + 1) / 2)]");
  EXPECT_EQ(read.ShapeOf("b"), "[batch, 8, floor((sequence + 1) / 4) - 1]");
  EXPECT_EQ(Difference(kStack, Sizes("batch", "sequence"), 5), "");
}

constexpr absl::string_view kTable = R"(graph {
  input %x: f32[batch, sequence]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %rows: i64[2, 1] = {0, 1}
  const %front: i64[1] = {0}
  %shape: ? = Shape(%x)
  %s: ? = Gather(%shape, %one) {axis = 0}
  %positions: ? = Range(%zero, %s, %one)
  %row: ? = Unsqueeze(%positions, %front)
  %column: ? = Unsqueeze(%positions, %one_axis)
  %future: ? = Less(%row, %column)
  %far: ? = Sub(%s, %one)
  %last: ? = Equal(%positions, %far)
  %y: ? = Mul(%x, %x)
  output %future
  output %last
  output %y
  const %one_axis: i64[1] = {1}
})";

TEST(ReadSizesTest, TablesAreExpressionsOverIndicesAndSizes) {
  const Read read(kTable, {{"batch", 3}, {"sequence", 70}});
  EXPECT_EQ(read.ShapeOf("future"), "[sequence, sequence]");
  EXPECT_EQ(read.ElementsOf("positions"), "i0");
  EXPECT_EQ(read.ElementsOf("future"), "not_negative(i0 - i1 - 1)");
  EXPECT_EQ(read.ElementsOf("last"), "is_zero(-sequence + i0 + 1)");
  EXPECT_EQ(Difference(kTable, Sizes("batch", "sequence"), 10), "");
}

constexpr absl::string_view kBranch = R"(graph {
  input %x: f32[batch, sequence]
  const %one: i64[] = {1}
  const %limit: i64[] = {100}
  const %axes: i64[1] = {0}
  %shape: ? = Shape(%x)
  %s: ? = Gather(%shape, %one) {axis = 0}
  %short: ? = LessOrEqual(%s, %limit)
  %sum: ? = ReduceSum(%x, %axes)
  %mean: ? = ReduceMean(%x)
  %y: ? = If(%short, %sum, %mean)
  output %y
})";

TEST(ReadSizesTest, AModelThatBranchesOnASizeHasTwoRegions) {
  const Read low(kBranch, {{"batch", 3}, {"sequence", 7}});
  EXPECT_THAT(low.Guards(), ElementsAre("sequence <= 100 by LessOrEqual"));
  const Read high(kBranch, {{"batch", 3}, {"sequence", 700}});
  EXPECT_THAT(high.Guards(), ElementsAre("sequence >= 101 by LessOrEqual"));
  EXPECT_EQ(Difference(kBranch, Sizes("batch", "sequence"), 10), "");
}

constexpr absl::string_view kWindowed = R"(graph {
  input %x: f32[batch, sequence, 8]
  const %shape: i64[4] = {0, -1, 32, 8}
  %y: ? = Reshape(%x, %shape)
  output %y
})";

TEST(ReadSizesTest, AMultipleThatAModelTakesIsAGuard) {
  const Read read(kWindowed, {{"batch", 3}, {"sequence", 64}});
  EXPECT_EQ(read.ShapeOf("y"), "[batch, floor(sequence / 32), 32, 8]");
  EXPECT_THAT(read.Guards(),
              Contains("batch*sequence - 32*batch*floor(sequence / 32) == 0 by Reshape"));
}

// The ends of rows in a form of a model that knows them (passes/live).
constexpr absl::string_view kLive = R"(graph {
  input %x: f32[batch, sequence, 8]
  input %live: bool[batch, sequence]
  %shape: ? = Shape(%x) {end = 2, start = 1}
  %extent: ? = reprise.LiveExtent(%live, %shape) {stride = 2}
  %filled: ? = reprise.LiveFill(%x, %extent) {axis = 1}
  %mask: ? = reprise.LiveMask(%extent, %shape) {rank = 3}
  %share: ? = reprise.LiveShare(%extent, %shape) {axis = 1, kernel = 3, rank = 3, stride = 2}
  %front: ? = reprise.LiveCompact(%x, %shape, %extent) {axis = 1, extents = [0], ranks = [1]}
  output %filled
  output %mask
  output %share
  output %front
})";

TEST(ReadSizesTest, TheEndsOfRowsFollowTheirSizes) {
  const Read read(kLive, {{"batch", 3}, {"sequence", 7}});
  EXPECT_EQ(read.ShapeOf("extent"), "[batch]");
  EXPECT_EQ(read.ShapeOf("filled"), "[batch, sequence, 8]");
  EXPECT_EQ(read.ShapeOf("mask"), "[batch, 1, sequence]");
  EXPECT_EQ(read.ShapeOf("share"), "[batch, floor((sequence + 1) / 2) - 1, 1]");
  EXPECT_EQ(read.ShapeOf("front"), "[batch, sequence, 8]");
  EXPECT_EQ(Difference(kLive, Sizes("batch", "sequence"), 10), "");
}

// Returns a graph of as many rows as a table says that no term does, after `steps` ops that make 4
// MB each at 2^20.
std::string RowsByATable(int steps) {
  std::string text = R"(graph {
  input %x: f32[sequence]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %front: i64[1] = {0}
  %shape: ? = Shape(%x)
  %size: ? = Squeeze(%shape, %front)
  %places: ? = Range(%zero, %size, %one)
  %floats: ? = Cast(%places) {to = 1}
  %table0: ? = CumSum(%floats, %zero)
)";
  for (int i = 0; i < steps; ++i) {
    absl::StrAppend(&text, "  %table", i + 1, ": ? = Abs(%table", i, ")\n");
  }
  absl::StrAppend(&text, "  %least: ? = ReduceMin(%table", steps, R"() {keepdims = 1}
  %rows: ? = Cast(%least) {to = 7}
  %y: ? = ConstantOfShape(%rows)
  output %y
})");
  return text;
}

TEST(ReadSizesTest, WhatARuleAsksForIsEvaluatedWithinBoundsOfMemory) {
  const Binding hint = {.axes = {{"sequence", int64_t{1} << 20}}};
  const auto few = ReadSizes(MustParse(RowsByATable(5)), hint);
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_EQ(few->values[static_cast<size_t>(few->outputs[0])].shape->front(), 0);
  EXPECT_EQ(ReadSizes(MustParse(RowsByATable(80)), hint).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ReadSizesTest, SizesThatDoNotFitAreRefusedAsSpecialisingDoes) {
  const Graph graph = MustParse(kWindowed);
  EXPECT_EQ(ReadSizes(graph, {.axes = {{"batch", 3}, {"sequence", 33}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Difference(kWindowed,
                       {{.axes = {{"batch", 3}, {"sequence", 64}}},
                        {.axes = {{"batch", 4}, {"sequence", 96}}},
                        {.axes = {{"batch", 2}, {"sequence", 33}}}},
                       1),
            "");
}

}  // namespace
}  // namespace reprise
