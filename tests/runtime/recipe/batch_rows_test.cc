#include "runtime/recipe/batch_rows.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/op.h"

namespace reprise {
namespace {

// Returns whether the output of the last node, fed by a batch of four, is marked.
bool OutputIsMarked(const std::string& body) {
  absl::StatusOr<Graph> graph = Parse(absl::StrCat("graph {\n", body, "\n}\n"));
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  if (!graph.ok()) return false;
  for (ValueId input : graph->inputs()) {
    Value& value = graph->value(input);
    if (value.shape.has_value()) continue;
    value.shape.emplace();
    for (const Dim& dim : value.dims) value.shape->push_back(dim.size);
  }
  for (NodeId id : graph->NodeIds()) {
    const absl::Status inferred = InferNode(*graph, id);
    EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  }
  MarkBatchRows(*graph, 4);
  const int64_t rows = graph->value(graph->outputs()[0]).batch_rows;
  EXPECT_TRUE(rows == 0 || rows == 4);
  return rows == 4;
}

TEST(BatchRowsTest, ScalarsThatAreComputedAreNoRows) {
  EXPECT_FALSE(
      OutputIsMarked("input %x: f32[4, 3]\n%q: ?, %s: ?, %z: ? = DynamicQuantizeLinear(%x)\n"
                     "%y: ? = Mul(%s, %s)\noutput %y"));
}

TEST(BatchRowsTest, SegmentsAreMarkedBesideTokens) {
  absl::StatusOr<Graph> graph = Parse(R"(graph {
    input %x: f32[8, 8]
    input %each: f32[2, 8]
    input %s: i32[3]
    param %w: f32[8, 8] = p0
    const %a: i64[1] = {0}
    %h: f32[8, 8] = reprise.Linear(%x, %w) {activation = "none"}
    %p: f32[2, 8] = reprise.SegmentReduce(%h, %s) {reduction = "first"}
    %q: f32[2, 8] = reprise.Linear(%p, %w) {activation = "none"}
    %r: f32[2, 8] = Add(%q, %each)
    %m: f32[2, 8] = reprise.SegmentReduce(%h, %s) {reduction = "last"}
    %sum: f32[8] = ReduceSum(%m, %a) {keepdims = 0}
    output %r
    output %sum
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  for (ValueId input : graph->inputs()) {
    Value& value = graph->value(input);
    value.shape.emplace();
    for (const Dim& dim : value.dims) value.shape->push_back(dim.size);
  }
  MarkBatchRows(*graph, 8);
  MarkSegments(*graph, 2);
  const auto mark = [&](const char* name) {
    return graph->value(graph->FindValue(name)).batch_rows;
  };
  EXPECT_EQ(mark("h"), 8);
  for (const char* name : {"each", "p", "q", "r"}) EXPECT_EQ(mark(name), 2) << name;
  // All of it is read.
  EXPECT_EQ(mark("m"), 0);
  EXPECT_EQ(mark("sum"), 0);
}

TEST(BatchRowsTest, OpsThatWorkInsideRowsKeepThemApart) {
  for (const char* body :
       {"input %x: f32[4, 3, 8]\n%y: ? = Relu(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\ninput %z: f32[4, 1, 8]\n%y: ? = Add(%x, %z)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %z: f32[] = {1.0}\n%y: ? = Add(%x, %z)\noutput %y",
        "input %x: f32[4, 3, 8]\nparam %w: f32[8, 5] = p0\n%y: ? = MatMul(%x, %w)\noutput %y",
        "input %x: f32[4, 2, 3, 8]\ninput %z: f32[4, 2, 1, 8]\ninput %a: i64[4]\n"
        "const %l: i64[1] = {4}\n%y: ? = reprise.AppendRows(%x, %z, %a, %l)\noutput %y",
        "input %x: f32[4, 3, 8]\ninput %z: f32[4, 8, 3]\n%y: ? = MatMul(%x, %z)\noutput %y",
        "input %x: f32[4, 3, 8]\ninput %z: f32[4, 3, 8]\n%y: ? = "
        "com.microsoft.FusedMatMul(%x, %z) {transB = 1}\noutput %y",
        "input %x: f32[12, 8]\nparam %w: f32[8, 5] = p0\n%y: ? = Gemm(%x, %w)\noutput %y",
        "input %x: f32[4, 3, 8]\nparam %w: f32[8, 8] = p0\n"
        "%y: ? = reprise.Linear(%x, %w, _, %x)\noutput %y",
        "input %x: f32[4, 3, 24]\ninput %m: f32[4, 1, 1, 3]\n"
        "%y: ? = reprise.Attention(%x, _, _, %m) {num_heads = 2, packed_qkv = 1}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = Softmax(%x) {axis = 1}\noutput %y",
        "input %x: f32[4, 3, 8]\nparam %g: f32[8] = p0\n"
        "%y: ? = LayerNormalization(%x, %g)\noutput %y",
        "param %t: f32[9, 8] = p0\ninput %i: i64[4, 3]\nparam %u: f32[3, 8] = p1\n"
        "const %j: i64[1, 3] = {0, 1, 2}\n"
        "%y: ? = reprise.EmbeddingSum(%t, %i, %u, %j)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %i: i64[] = {0}\n"
        "%y: ? = Gather(%x, %i) {axis = 1}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %s: i64[2] = {12, 8}\n%z: ? = Reshape(%x, %s)\n"
        "%y: ? = Relu(%z)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %a: i64[2] = {1, -1}\n%y: ? = ReduceMean(%x, %a)\n"
        "output %y",
        "input %x: f32[4, 3, 8, 8]\nparam %w: f32[4, 3, 3, 3] = p0\nparam %b: f32[4] = p1\n"
        "%y: ? = Conv(%x, %w, %b)\noutput %y",
        "input %x: f32[4, 3, 8]\nparam %w: f32[3, 2, 4] = p0\n%y: ? = ConvTranspose(%x, %w)\n"
        "output %y",
        "input %x: f32[4, 3, 8, 8]\n%y: ? = MaxPool(%x) {kernel_shape = [2, 2]}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = AveragePool(%x) {kernel_shape = [3]}\noutput %y",
        "input %x: f32[4, 3, 8, 8]\n%y: ? = GlobalAveragePool(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\nparam %s: f32[3] = p0\nparam %b: f32[3] = p1\n"
        "%y: ? = InstanceNormalization(%x, %s, %b)\noutput %y",
        "input %x: f32[4, 3, 5, 6]\ninput %g: f32[4, 2, 3, 2]\n%y: ? = GridSample(%x, %g)\n"
        "output %y",
        "input %x: f32[4, 3, 8]\n%y: ? = LRN(%x) {size = 3}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = LogSoftmax(%x)\noutput %y",
        "input %x: f32[4, 3, 3]\n%y: ? = Det(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = ArgMax(%x) {axis = 2}\noutput %y",
        "input %x: f32[4, 1, 8]\nconst %s: i64[3] = {4, 3, 8}\n%y: ? = Expand(%x, %s)\noutput %y",
        "input %x: f32[4, 3]\nconst %s: i64[2] = {1, 2}\n%y: ? = Tile(%x, %s)\noutput %y",
        "input %x: f32[4, 3, 4, 4]\nconst %s: f32[4] = {1.0, 1.0, 2.0, 2.0}\n"
        "%y: ? = Resize(%x, _, %s)\noutput %y",
        "input %x: f32[4, 8]\nconst %b: i64[1] = {1}\nconst %e: i64[1] = {7}\nconst %a: i64[1] = "
        "{1}\n%y: ? = Slice(%x, %b, %e, %a)\noutput %y",
        // Packed tokens, and segments that are no rows of them.
        "input %x: f32[4, 24]\ninput %m: f32[4]\ninput %s: i32[3]\n%y: ? = "
        "reprise.SegmentAttention(%x, _, _, %m, _, %s) {num_heads = 2, packed_qkv = 1}\noutput %y",
        "input %x: i64[4]\ninput %s: i32[3]\n%y: ? = reprise.SegmentCumSum(%x, %s)\noutput %y",
        "input %x: f32[4, 8]\ninput %s: i32[3]\n%y: ?, %r: ?, %z: ? = "
        "reprise.SegmentDynamicQuantizeLinear(%x, %s)\noutput %r",
        "input %x: u8[4, 8]\ninput %z: u8[4, 1]\nparam %w: u8[8, 5] = p0\n"
        "%y: ? = MatMulInteger(%x, %w, %z)\noutput %y",
        "input %x: f32[2, 8]\ninput %s: i32[3]\ninput %t: i64[4]\n%y: ? = "
        "reprise.SegmentSpread(%x, %s, %t)\noutput %y"}) {
    EXPECT_TRUE(OutputIsMarked(body)) << body;
  }
}

TEST(BatchRowsTest, OpsThatMayMixRowsAreNotMarked) {
  for (const char* body :
       {// Dim 0 has the right size and is something else.
        "input %x: f32[4, 4, 8]\n%y: ? = Transpose(%x) {perm = [1, 0, 2]}\noutput %y",
        "input %x: f32[4, 4]\n%y: ? = Softmax(%x) {axis = 0}\noutput %y",
        "input %x: f32[4, 4]\n%y: ? = Det(%x)\noutput %y",
        "const %x: f32[4] = {1.0, 2.0, 3.0, 4.0}\n%y: ? = Relu(%x)\noutput %y",
        "input %x: f32[4, 8]\ninput %z: f32[8, 4]\n%y: ? = MatMul(%x, %z)\noutput %y",
        "input %x: f32[4, 8]\ninput %z: f32[4, 8]\n%y: ? = com.microsoft.FusedMatMul(%x, %z) "
        "{transB = 1}\noutput %y",
        "input %x: f32[4, 4]\nparam %w: f32[4, 5] = p0\n%y: ? = com.microsoft.FusedMatMul(%x, %w) "
        "{transA = 1}\noutput %y",
        "input %x: f32[4, 1, 8]\ninput %z: f32[4, 8]\n%y: ? = Add(%x, %z)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %i: i64[4] = {3, 2, 1, 0}\n"
        "%y: ? = Gather(%x, %i)\noutput %y",
        "const %x: f32[1, 1, 2] = {1.0, 2.0}\ninput %w: f32[4, 1, 2]\n%y: ? = Conv(%x, %w)\n"
        "output %y",
        "input %x: f32[4, 1, 2]\ninput %w: f32[4, 1, 2]\n%y: ? = Conv(%x, %w)\noutput %y",
        "input %x: f32[4, 4, 2]\ninput %w: f32[4, 1, 2]\n%y: ? = ConvTranspose(%x, %w)\n"
        "output %y",
        // Elements of a batch found by their places.
        "input %x: f32[4, 3, 5, 6]\ninput %r: f32[4, 4]\ninput %i: i64[4]\n"
        "%y: ? = RoiAlign(%x, %r, %i)\noutput %y",
        "input %x: f32[4, 3, 5, 6]\nconst %g: f32[4, 1, 1, 2] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "
        "0.0, "
        "0.0}\n%y: ? = GridSample(%x, %g)\noutput %y",
        "input %x: f32[4, 4]\n%y: ? = ArgMax(%x) {axis = 0}\noutput %y",
        "input %x: f32[4, 3]\nconst %s: i64[2] = {2, 1}\n%y: ? = Tile(%x, %s)\noutput %y",
        "input %x: f32[4, 2]\nconst %s: f32[2] = {1.1, 2.0}\n%y: ? = Resize(%x, _, %s)\noutput %y",
        // The batch turned around.
        "input %x: f32[4, 8]\nconst %b: i64[1] = {3}\nconst %e: i64[1] = {-9}\nconst %a: i64[1] = "
        "{0}\nconst %s: i64[1] = {-1}\n%y: ? = Slice(%x, %b, %e, %a, %s)\noutput %y",
        "input %x: f32[4, 3]\nconst %a: i64[1] = {0}\n"
        "%y: ? = ReduceSum(%x, %a)\noutput %y",
        "input %x: f32[4, 3]\nconst %a: i64[1] = {-2}\n%y: ? = ReduceMean(%x, %a)\noutput %y",
        "input %x: f32[4, 3]\n%y: ? = ReduceSum(%x)\noutput %y",
        "input %x: f32[4, 8]\ninput %s: i32[3]\n%y: ? = reprise.SegmentReduce(%x, %s)\n"
        "output %y",
        "input %x: u8[4, 8]\ninput %w: u8[8, 4]\n%y: ? = MatMulInteger(%w, %x)\noutput %y",
        "input %x: f32[4, 6]\nconst %s: i64[2] = {3, 8}\n%y: ? = Reshape(%x, %s)\noutput %y"}) {
    EXPECT_FALSE(OutputIsMarked(body)) << body;
  }
}

TEST(BatchRowsTest, WhatIsMixedLaterIsComputedWhole) {
  // Softmax over the batch reads every row of the sum.
  EXPECT_FALSE(
      OutputIsMarked("input %x: f32[4, 8]\n%y: ? = Relu(%x)\n%z: ? = Exp(%y)\n"
                     "%s: ? = Softmax(%z) {axis = 0}\noutput %y\noutput %s"));
  EXPECT_TRUE(
      OutputIsMarked("input %x: f32[4, 8]\n%y: ? = Relu(%x)\n%z: ? = Exp(%x)\n"
                     "%s: ? = Softmax(%z) {axis = 0}\noutput %y\noutput %s"));
}

TEST(BatchRowsTest, TokensThatSegmentsReadStayMarked) {
  // Tokens after the last segment are never read.
  EXPECT_TRUE(
      OutputIsMarked("input %x: f32[4, 8]\ninput %s: i32[3]\n%y: ? = Relu(%x)\n"
                     "%r: ? = reprise.SegmentReduce(%y, %s)\noutput %y\noutput %r"));
}

}  // namespace
}  // namespace reprise
