#include "runtime/recipe/row_walks.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/op.h"
#include "runtime/recipe/batch_rows.h"

namespace reprise {
namespace {

constexpr int64_t kRows = 4;

Graph MarkedGraph(absl::string_view text) {
  absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  for (const ValueId input : graph->inputs()) {
    Value& value = graph->value(input);
    value.shape.emplace();
    for (const Dim& dim : value.dims) value.shape->push_back(dim.size);
  }
  for (const NodeId id : graph->NodeIds()) EXPECT_TRUE(InferNode(*graph, id).ok());
  MarkBatchRows(*graph, kRows);
  return *std::move(graph);
}

std::string Pictures(absl::string_view size, absl::string_view body) {
  return absl::StrCat("graph {\n input %x: f32[4, 3, ", size, ", ", size,
                      "]\n param %w: f32[8, 3, 3, 3] = p0\n param %u: f32[8, 8, 1, 1] = p1\n",
                      " %a: ? = Conv(%x, %w) {pads = [1, 1, 1, 1]}\n %r: ? = Relu(%a)\n", body,
                      "}");
}

TEST(RowWalksTest, NodesThatMoveMuchRunRowByRow) {
  const Graph graph = MarkedGraph(Pictures("256", "%b: ? = Conv(%r, %u)\n output %b\n"));
  const RowWalks walks(graph, kRows);
  ASSERT_EQ(walks.walks().size(), 1u);
  EXPECT_EQ(walks.walks()[0].first, 0);
  EXPECT_EQ(walks.walks()[0].last, 2);
  const ValueId a = graph.FindValue("a");
  EXPECT_TRUE(walks.HasRows(a));
  EXPECT_FALSE(walks.HasRows(graph.FindValue("w")));
  EXPECT_EQ(*walks.GraphOf(1).value(a).shape, (Shape{1, 8, 256, 256}));
  EXPECT_EQ(*graph.value(a).shape, (Shape{4, 8, 256, 256}));
}

TEST(RowWalksTest, SmallPicturesAndOneRowStayTogether) {
  for (const char* size : {"32", "64"}) {
    const Graph graph = MarkedGraph(Pictures(size, "%b: ? = Conv(%r, %u)\n output %b\n"));
    EXPECT_TRUE(RowWalks(graph, kRows).walks().empty()) << size;
  }
  const Graph graph = MarkedGraph(Pictures("256", "output %r\n"));
  EXPECT_TRUE(RowWalks(graph, 1).walks().empty());
  EXPECT_EQ(RowWalks(graph, 1).Of(0), -1);
}

// The error of an index out of range names its place among all rows.
TEST(RowWalksTest, WhatLooksUpStaysTogether) {
  const Graph graph = MarkedGraph(R"(graph {
    input %ids: i64[4, 4096]
    param %t: f32[16, 64] = p0
    %e: ? = reprise.EmbeddingSum(%t, %ids)
    %a: ? = Exp(%e)
    %b: ? = Tanh(%a)
    output %b
  })");
  const RowWalks walks(graph, kRows);
  ASSERT_EQ(walks.walks().size(), 1u);
  EXPECT_EQ(walks.walks()[0].first, 1);
  EXPECT_EQ(walks.Of(0), -1);
}

// The indices of the largest elements count over all rows.
TEST(RowWalksTest, WhatCountsFromTheFirstRowStaysTogether) {
  const auto pooled = [](const char* results) {
    return MarkedGraph(absl::StrCat(R"(graph {
      input %x: f32[4, 3, 256, 256]
      %r: ? = Exp(%x)
      )",
                                    results,
                                    R"( = MaxPool(%r) {kernel_shape = [2, 2], strides = [2, 2]}
      %a: ? = Exp(%y)
      %b: ? = Tanh(%a)
      output %b
    })"));
  };
  const Graph values = pooled("%y: ?");
  EXPECT_EQ(RowWalks(values, kRows).Of(1), 0);
  const Graph places = pooled("%y: ?, %i: ?");
  EXPECT_EQ(RowWalks(places, kRows).Of(1), -1);
}

// The sum mixes rows, and nodes after it have none; a row that begins anywhere stays as well.
TEST(RowWalksTest, AWalkEndsWhereRowsMeet) {
  const Graph graph = MarkedGraph(Pictures(
      "256", "const %d: i64[1] = {0}\n %s: ? = ReduceSum(%r, %d)\n %t: ? = Exp(%s)\n output %t\n"));
  const RowWalks walks(graph, kRows);
  ASSERT_EQ(walks.walks().size(), 0u) << "the sum reads all rows of %r, dead ones too";
  const Graph odd = MarkedGraph(Pictures("255", "output %r\n"));
  EXPECT_TRUE(RowWalks(odd, kRows).walks().empty());
}

}  // namespace
}  // namespace reprise
