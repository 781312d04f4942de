#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(RoundProductsTest, ProductsOfWeightsAreMarkedAndNothingElse) {
  EXPECT_EQ(RunPass(*RoundProducts(), R"(graph {
    input %x: f32[2, 16]
    input %z: f32[16, 16]
    param %w: f32[16, 16] = p0
    %a: ? = MatMul(%x, %w)
    %b: ? = Gemm(%a, %w) {transB = 1}
    %c: ? = reprise.Linear(%b, %w)
    %d: ? = MatMul(%c, %z)
    %e: ? = Gemm(%z, %w) {transA = 1}
    %f: ? = Add(%e, %w)
    output %d
    output %f
  })"),
            RunPass(*EliminateDead(), R"(graph {
    input %x: f32[2, 16]
    input %z: f32[16, 16]
    param %w: f32[16, 16] = p0
    %a: ? = MatMul(%x, %w) {precision = "bf16"}
    %b: ? = Gemm(%a, %w) {precision = "bf16", transB = 1}
    %c: ? = reprise.Linear(%b, %w) {precision = "bf16"}
    %d: ? = MatMul(%c, %z)
    %e: ? = Gemm(%z, %w) {transA = 1}
    %f: ? = Add(%e, %w)
    output %d
    output %f
  })"));
}

TEST(RoundProductsTest, WeightsOfFewElementsStayExact) {
  constexpr absl::string_view kGraph = R"(graph {
    input %x: f32[2, 16]
    param %w: f32[16, 15] = p0
    %y: ? = MatMul(%x, %w)
    output %y
  })";
  EXPECT_EQ(RunPass(*RoundProducts(), kGraph), RunPass(*EliminateDead(), kGraph));
}

TEST(RoundProductsTest, WhatRoundsIsCountedAmongAllThatMultipliesWeights) {
  Graph graph = ParseSpecialized(R"(graph {
    input %x: f32[2, 16]
    input %q: f32[2, 3, 8]
    input %image: f32[1, 4, 5, 5]
    param %w: f32[16, 16] = p0
    param %kernel: f32[4, 4, 3, 3] = p1
    %a: ? = MatMul(%x, %w)
    %b: ? = Gemm(%w, %a) {transB = 1}
    %c: ? = MatMul(%a, %b)
    %d: ? = Conv(%image, %kernel)
    %e: ? = reprise.Attention(%q, %q, %q) {num_heads = 2}
    %f: ? = reprise.ConvTranspose(%image, %kernel) {activation = "relu"}
    output %c
    output %d
    output %e
    output %f
  })");
  ASSERT_TRUE(RoundProducts()->Run(graph).ok());
  const RoundedProducts count = CountRoundedProducts(graph);
  EXPECT_EQ(count.rounded, 1);
  EXPECT_EQ(count.all, 4);
  EXPECT_EQ(count.attentions, 1);
}

TEST(RoundProductsTest, AttentionMayRound) {
  Graph graph = ParseSpecialized(R"(graph {
    input %q: f32[2, 3, 8]
    %y: ? = reprise.Attention(%q, %q, %q) {num_heads = 2}
    output %y
  })");
  ASSERT_TRUE(RunCapturePasses(graph, {.precision = Precision::kBf16}).ok());
  ASSERT_EQ(OpsOf(graph), "reprise.Attention");
  const Attributes& attributes = graph.node(graph.NodeIds()[0]).attributes;
  EXPECT_EQ(attributes.String(kPrecisionAttribute, ""), "bf16");
}

TEST(RoundProductsTest, CaptureRoundsOnlyWhereItIsAskedFor) {
  constexpr absl::string_view kProduct = R"(graph {
    input %x: f32[2, 16]
    param %w: f32[16, 16] = p0
    param %b: f32[16] = p1
    %m: ? = MatMul(%x, %w)
    %y: ? = Add(%m, %b)
    output %y
  })";
  for (const Precision precision : {Precision::kExact, Precision::kBf16}) {
    Graph graph = ParseSpecialized(kProduct);
    ASSERT_TRUE(RunCapturePasses(graph, {.precision = precision}).ok());
    ASSERT_EQ(OpsOf(graph), "reprise.Linear");
    const Attributes& attributes = graph.node(graph.NodeIds()[0]).attributes;
    EXPECT_EQ(attributes.String(kPrecisionAttribute, "exact"), PrecisionName(precision));
  }
}

}  // namespace
}  // namespace reprise
