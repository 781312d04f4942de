// The regions of a model's sizes, and the shapes of its outputs there.
#include "runtime/passes/read/size_regions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kTwoWays = R"(graph {
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

TEST(SizeRegionsTest, EachRegionIsReadOnce) {
  const Graph graph = MustParse(kTwoWays);
  SizeRegions regions(graph, {.axes = {{"batch", 2}, {"sequence", 5}}});
  for (int64_t size = 2; size <= 200; ++size) {
    const auto shapes = regions.ShapesAt({{"sequence", size}});
    ASSERT_TRUE(shapes.ok()) << shapes.status();
    EXPECT_EQ((*shapes)[0], size <= 100 ? (Shape{1, size}) : (Shape{1, 1}));
  }
  EXPECT_EQ(regions.regions().size(), 2u);
}

TEST(SizeRegionsTest, BoundariesNameTheNodeThatDecides) {
  const Graph graph = MustParse(kTwoWays);
  SizeRegions regions(graph, {.axes = {{"batch", 2}, {"sequence", 5}}});
  const auto boundaries = regions.BoundariesAlong("sequence", 2, 500, 1, 8);
  ASSERT_EQ(boundaries.size(), 1u);
  EXPECT_EQ(boundaries[0].from, 101);
  ASSERT_NE(boundaries[0].node, kNone);
  const std::string op = graph.node(boundaries[0].node).op;
  EXPECT_TRUE(op == "LessOrEqual" || op == "If") << op;
  EXPECT_TRUE(regions.BoundariesAlong("sequence", 2, 100, 1, 8).empty());
  EXPECT_TRUE(regions.BoundariesAlong("batch", 2, 100, 1, 8).empty());
}

TEST(SizeRegionsTest, SizesThatAreRefusedHaveNoBoundaries) {
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, sequence]
  param %w: f32[300] = p0
  %head: ? = Add(%x, %w)
  output %head
})");
  SizeRegions regions(graph, {.axes = {{"batch", 2}, {"sequence", 300}}});
  EXPECT_TRUE(regions.BoundariesAlong("sequence", 2, 500, 1, 8).empty());
  EXPECT_TRUE(regions.Takes({{"sequence", 300}}).ok());
  EXPECT_THAT(std::string(regions.Takes({{"sequence", 301}}).message()), HasSubstr("[2, 301]"));
}

TEST(SizeRegionsTest, APlaceThatIsNotThereIsAnError) {
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, sequence]
  const %place: i64[1] = {-3}
  %y: ? = Gather(%x, %place) {axis = 1}
  output %y
})");
  SizeRegions regions(graph, {.axes = {{"batch", 2}, {"sequence", 5}}});
  EXPECT_TRUE(regions.ShapesAt({{"sequence", 3}}).ok());
  EXPECT_THAT(std::string(regions.ShapesAt({{"sequence", 2}}).status().message()),
              HasSubstr("at a known place that is not there at batch=2,sequence=2"));
}

TEST(SizeRegionsTest, RegionsWithoutEndAreRefused) {
  // A scale that makes roundings of its own at each size.
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, 3, 4, width]
  const %scales: f32[4] = {1, 1, 1, 1.3}
  %y: ? = Resize(%x, _, %scales) {mode = "nearest"}
  output %y
})");
  const Binding base = {.axes = {{"batch", 2}, {"width", 5}}};
  SizeRegions regions(graph, base, /*most_nodes=*/100);
  int64_t size = 1;
  while (size < 200 && regions.ShapesAt({{"width", size}}).ok()) ++size;
  EXPECT_EQ(size, 101);
  EXPECT_TRUE(regions.has_too_many());
  EXPECT_TRUE(regions.ShapesAt({{"width", 57}}).ok());  // one of those that are remembered
  EXPECT_FALSE(regions.ShapesAt({{"width", 7}}).ok());  // one that was forgotten
  EXPECT_EQ(regions.regions().size(), SizeRegions::kMost);
  EXPECT_TRUE(regions.Takes({{"width", 7}}).ok());
}

TEST(SizeRegionsTest, LargeTablesThatDecideAtEachSizeAreEvaluatedWithinBounds) {
  // As many positions as the largest of a table of a million that no term says.
  const Graph graph = MustParse(R"(graph {
  input %x: f32[sequence]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %many: i64[] = {1000000}
  const %front: i64[1] = {0}
  %shape: ? = Shape(%x)
  %size: ? = Squeeze(%shape, %front)
  %end: ? = Add(%size, %many)
  %places: ? = Range(%size, %end, %one)
  %most: ? = ReduceMax(%places) {keepdims = 1}
  %y: ? = ConstantOfShape(%most)
  output %y
})");
  SizeRegions regions(graph, {.axes = {{"sequence", 1}}});
  int64_t size = 1;
  while (size < 100 && regions.ShapesAt({{"sequence", size}}).ok()) ++size;
  EXPECT_EQ(size, 6);
  EXPECT_EQ(regions.too_many(), "sizes decide by large tables that no term says");
}

}  // namespace
}  // namespace reprise
