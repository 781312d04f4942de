// The shapes of all values at any sizes, and the sizes that a model takes.
#include "runtime/passes/read/value_shapes.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

// Scores of each position against each, and a table of 700 places that is cut to the length.
Graph Scores() {
  return MustParse(absl::StrCat(R"(graph {
  input %x: f32[batch, sequence, 8]
  const %table: f32[700, 1] = {)",
                                absl::StrJoin(std::vector<int>(700, 0), ", "), R"(}
  const %one: i64[1] = {1}
  const %zero: i64[1] = {0}
  %shape: ? = Shape(%x)
  %length: ? = Gather(%shape, %one) {axis = 0}
  %own: ? = Slice(%table, %zero, %length, %zero)
  %y: ? = Add(%x, %own)
  %turned: ? = Transpose(%y) {perm = [0, 2, 1]}
  %scores: ? = MatMul(%y, %turned)
  output %scores
})"));
}

TEST(ValueShapesTest, ShapesAreThoseOfSpecialising) {
  const Graph graph = Scores();
  ValueShapes shapes(graph, {.axes = {{"batch", 2}, {"sequence", 5}}});
  for (const int64_t size : {3, 64, 700, 7}) {
    const auto read = shapes.At({{"sequence", size}});
    ASSERT_TRUE(read.ok()) << read.status();
    SpecializeTrace trace;
    ASSERT_TRUE(
        Specialize(graph, {.axes = {{"batch", 2}, {"sequence", size}}}, {.trace = &trace}).ok());
    EXPECT_EQ(*read, trace.shapes);
  }
}

TEST(ValueShapesTest, SizesBeyondATableAreNotTaken) {
  const Graph graph = Scores();
  ValueShapes shapes(graph, {.axes = {{"batch", 1}, {"sequence", 5}}});
  EXPECT_TRUE(shapes.Takes({{"sequence", 700}}).ok());
  const absl::Status refused = shapes.Takes({{"sequence", 701}});
  EXPECT_EQ(refused, Specialize(graph, {.axes = {{"batch", 1}, {"sequence", 701}}}).status());
  EXPECT_FALSE(refused.ok());
  EXPECT_TRUE(shapes.Takes({{"sequence", 699}}).ok());
}

TEST(ValueShapesTest, ValuesBeyondALimitAreNotTaken) {
  const Graph graph = Scores();
  ValueShapes shapes(graph, {.axes = {{"batch", 1}, {"sequence", 5}}});
  EXPECT_TRUE(shapes.Takes({{"sequence", 100}}, {.max_value_bytes = 40000}).ok());
  const absl::Status refused = shapes.Takes({{"sequence", 101}}, {.max_value_bytes = 40000});
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("needs 40804 bytes, the limit is 40000"));
  EXPECT_TRUE(
      absl::IsResourceExhausted(shapes.Takes({{"sequence", 101}}, {.max_folded_bytes = 403})));
}

TEST(ValueShapesTest, BytesFollowTheSizes) {
  const Graph graph = Scores();
  ValueShapes shapes(graph, {.axes = {{"batch", 1}, {"sequence", 5}}});
  for (const int64_t size : {3, 64, 500, 7}) {
    const auto bytes = shapes.BytesAt({{"sequence", size}});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const int64_t rows = 4 * size * 8, scores = 4 * size * size;
    EXPECT_EQ(bytes->largest_table, std::max<int64_t>(4 * size, 24)) << "the table, or the shape";
    EXPECT_EQ(bytes->largest_node, scores + 2 * rows);
    EXPECT_EQ(bytes->all, 3 * rows + scores);
    EXPECT_FALSE(bytes->reads_beyond);
  }
}

}  // namespace
}  // namespace reprise
