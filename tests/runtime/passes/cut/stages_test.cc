// Which pieces of a cut graph are apart.
#include "runtime/passes/cut/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/cut/cut_graph.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using testing::ElementsAre;

std::vector<std::string> Ops(const CutGraph::Stage& stage) {
  std::vector<std::string> ops;
  for (const NodeId id : stage.section.graph->NodeIds()) {
    ops.push_back(stage.section.graph->node(id).op);
  }
  return ops;
}

TEST(StagesTest, LayersAreApartFromTheNodesThatPickTheirRows) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n, 8]
    param %w: f32[8, 4] = p0
    %hidden: ? = Neg(%x)
    %where: ? = NonZero(%hidden) @where
    %indices: ? = Transpose(%where)
    %rows: ? = GatherND(%hidden, %indices)
    %flat: ? = Relu(%rows)
    %product: ? = MatMul(%x, %w)
    %kept: ? = Gather(%product, %where) {axis = 0}
    %last: ? = MatMul(%kept, %product)
    output %flat
    output %last
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 3);
  EXPECT_THAT(Ops(cut->stages[0]), ElementsAre("Neg", "MatMul"));
  EXPECT_THAT(Ops(cut->stages[1]), ElementsAre("Transpose", "GatherND", "Relu", "Gather"));
  EXPECT_TRUE(cut->stages[1].section.is_light);
  EXPECT_EQ(cut->stages[1].section.label, "after NonZero 'where'");
  EXPECT_THAT(Ops(cut->stages[2]), ElementsAre("MatMul"));
  EXPECT_EQ(cut->stages[2].section.label, "after NonZero 'where', layers");
}

TEST(StagesTest, WhatTakesItsShapeFromAResultOfACutComesAfterIt) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n, 4]
    input %one: f32[1, 1]
    %where: ? = NonZero(%x)
    %size: ? = Shape(%where)
    %y: ? = Expand(%one, %size)
    output %y
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 2);
  EXPECT_THAT(Ops(cut->stages[1]), ElementsAre("Shape", "Expand"));
}

TEST(StagesTest, RowsOfATableOfTheModelStayWithTheLayers) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: i64[n]
    param %table: f32[9, 8] = p0
    param %w: f32[8, 4] = p1
    %where: ? = NonZero(%x)
    %rows: ? = Gather(%table, %where) {axis = 0}
    %y: ? = MatMul(%rows, %w)
    output %y
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 2);
  EXPECT_THAT(Ops(cut->stages[1]), ElementsAre("Gather", "MatMul"));
}

constexpr char kDetector[] = R"(graph {
  input %image: f32[3, height, width]
  param %w: f32[4, 3, 3, 3] = p0
  const %first: i64[1] = {0}
  const %flat: i64[1] = {-1}
  const %scales: f32[4] = {1, 1, 2.5, 2.5}
  %row: ? = Unsqueeze(%image, %first)
  %resized: ? = Resize(%row, _, %scales) {mode = "linear"}
  %map: ? = Conv(%resized, %w) {pads = [1, 1, 1, 1]}
  %relu: ? = Relu(%map)
  %scores: ? = Reshape(%relu, %flat)
  %found: ? = NonZero(%scores) @find
  %best: ? = Gather(%scores, %found) {axis = 0}
  output %best
})";

TEST(StagesTest, AResizeInFrontOfLayersLeavesTheFrontEmpty) {
  const auto cut = CutAtData(MustParse(kDetector), {}, {.splits_front = true});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 5);
  EXPECT_THAT(Ops(cut->stages[0]), ElementsAre());
  EXPECT_THAT(Ops(cut->stages[1]), ElementsAre("Unsqueeze", "Resize"));
  EXPECT_THAT(Ops(cut->stages[2]), ElementsAre("Conv", "Relu"));
  EXPECT_THAT(Ops(cut->stages[3]), ElementsAre("Reshape"));
  EXPECT_THAT(Ops(cut->stages[4]), ElementsAre("Gather"));
  EXPECT_EQ(cut->stages[2].section.label, "of the first layers");
  ASSERT_EQ(cut->stages[3].nodes.size(), 1);
  EXPECT_EQ(cut->stages[3].nodes[0].node.name, "find");
}

// Anchors have the size of a plane, and a share of each channel comes of all of it.
TEST(StagesTest, SharesOfChannelsAreAmongTheLayersAndTablesOfWeightsAreNot) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %image: f32[3, height, width]
    param %w: f32[4, 3, 3, 3] = p0
    param %v: f32[4, 4, 1, 1] = p1
    param %cell: f32[1, 1] = p2
    const %first: i64[1] = {0}
    const %flat: i64[1] = {-1}
    const %scales: f32[4] = {1, 1, 2.5, 2.5}
    %row: ? = Unsqueeze(%image, %first)
    %resized: ? = Resize(%row, _, %scales) {mode = "linear"}
    %map: ? = Conv(%resized, %w) {pads = [1, 1, 1, 1]}
    %mean: ? = GlobalAveragePool(%map)
    %share: ? = Conv(%mean, %v)
    %scaled: ? = Mul(%map, %share)
    %shape: ? = Shape(%scaled)
    %ones: ? = ConstantOfShape(%shape)
    %anchors: ? = Add(%ones, %cell)
    %moved: ? = Add(%scaled, %anchors)
    %scores: ? = Reshape(%moved, %flat)
    %found: ? = NonZero(%scores) @find
    output %found
  })"),
                             {}, {.splits_front = true});
  ASSERT_NE(cut, nullptr);
  ASSERT_GE(cut->stages.size(), 4);
  EXPECT_THAT(Ops(cut->stages[2]), ElementsAre("Conv", "GlobalAveragePool", "Conv", "Mul"));
  EXPECT_THAT(Ops(cut->stages[3]),
              ElementsAre("Shape", "ConstantOfShape", "Add", "Add", "Reshape"));
}

TEST(StagesTest, ABatchOfPicturesStaysInTheFront) {
  const auto cut = CutAtData(MustParse(kDetector), {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 2);
  EXPECT_THAT(Ops(cut->stages[0]), ElementsAre("Unsqueeze", "Resize", "Conv", "Relu", "Reshape"));
}

}  // namespace
}  // namespace reprise
