#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

std::unique_ptr<Pass> Rounding(Precision precision, WeightBits weights = WeightBits::kStored) {
  return RoundProductsAs({.precision = precision, .weights = weights});
}

TEST(RoundProductsTest, ProductsOfWeightsAreMarkedAndNothingElse) {
  EXPECT_EQ(RunPass(*Rounding(Precision::kBf16), R"(graph {
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

TEST(RoundProductsTest, FloatsBecomeBytesByColumnWhereRowsDo) {
  EXPECT_EQ(RunPass(*Rounding(Precision::kInt8), R"(graph {
    input %x: f32[2, 16]
    param %w: f32[16, 16] = p0
    param %s: f32[16, 16] = DequantizeLinear{axis = 1}(i8[16, 16] p1, f32[16] p2)
    %a: ? = MatMul(%x, %w)
    %b: ? = Gemm(%a, %w) {transB = 1}
    %c: ? = reprise.Linear(%b, %s)
    output %c
  })"),
            RunPass(*EliminateDead(), R"(graph {
    input %x: f32[2, 16]
    param %s: f32[16, 16] = DequantizeLinear{axis = 1}(p1, p2)
    param %v: f32[16, 16] = DequantizeLinear{axis = 1}(reprise.RoundedPart{axis = 1, bits = 8, part = "numbers"}(p0), reprise.RoundedPart{axis = 1, bits = 8, part = "scales"}(p0))
    param %u: f32[16, 16] = DequantizeLinear{axis = 0}(reprise.RoundedPart{axis = 0, bits = 8, part = "numbers"}(p0), reprise.RoundedPart{axis = 0, bits = 8, part = "scales"}(p0))
    %a: ? = MatMul(%x, %v) {precision = "int8"}
    %b: ? = Gemm(%a, %u) {precision = "int8", transB = 1}
    %c: ? = reprise.Linear(%b, %s) {precision = "int8"}
    output %c
  })"));
}

TEST(RoundProductsTest, WeightsInBlocksHaveRowsRoundedByBlock) {
  constexpr absl::string_view kProduct = R"(graph {
    input %x: f32[2, 512]
    param %w: f32[8, 512] = reprise.DequantizeBits{K = 512, block_size = 256, bits = 4}(u8[8, 256] p0, f32[8, 2] p1)
    %y: ? = Gemm(%x, %w) {transB = 1}
    output %y
  })";
  Graph graph = ParseSpecialized(kProduct);
  ASSERT_TRUE(Rounding(Precision::kInt8)->Run(graph).ok());
  const Node& product = graph.node(graph.NodeIds()[0]);
  EXPECT_EQ(product.attributes.String(kPrecisionAttribute, ""), "int8");
  EXPECT_EQ(product.attributes.Int(kRoundedBlockAttribute, 0), 128);
  EXPECT_EQ(graph.value(product.inputs[1]).parameter->op(), "reprise.DequantizeBits");
}

TEST(RoundProductsTest, WeightsOfExactProductsAreRoundedAlone) {
  for (const WeightBits form : {WeightBits::kInt8, WeightBits::kInt4}) {
    Graph graph = ParseSpecialized(R"(graph {
      input %x: f32[2, 64]
      param %w: f32[64, 8] = p0
      %y: ? = MatMul(%x, %w)
      output %y
    })");
    ASSERT_TRUE(Rounding(Precision::kExact, form)->Run(graph).ok());
    const Node& product = graph.node(graph.NodeIds()[0]);
    EXPECT_FALSE(product.attributes.Has(kPrecisionAttribute));
    EXPECT_EQ(graph.value(product.inputs[1]).parameter->op(),
              form == WeightBits::kInt8 ? "DequantizeLinear" : "Transpose");
  }
}

TEST(RoundProductsTest, WeightsOfFewElementsStayExact) {
  constexpr absl::string_view kGraph = R"(graph {
    input %x: f32[2, 16]
    param %w: f32[16, 15] = p0
    %y: ? = MatMul(%x, %w)
    output %y
  })";
  EXPECT_EQ(RunPass(*Rounding(Precision::kBf16), kGraph), RunPass(*EliminateDead(), kGraph));
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
  ASSERT_TRUE(Rounding(Precision::kBf16)->Run(graph).ok());
  const RoundedProducts count = CountRoundedProducts(graph);
  EXPECT_EQ(count.rounded, 1);
  EXPECT_EQ(count.by_precision[static_cast<size_t>(Precision::kBf16)], 1);
  EXPECT_EQ(count.all, 4);
  EXPECT_EQ(count.attentions, 1);
}

TEST(RoundProductsTest, AttentionMayRound) {
  for (const Precision precision : {Precision::kBf16, Precision::kInt8}) {
    Graph graph = ParseSpecialized(R"(graph {
      input %q: f32[2, 3, 8]
      %y: ? = reprise.Attention(%q, %q, %q) {num_heads = 2}
      output %y
    })");
    ASSERT_TRUE(RunCapturePasses(graph, {.precision = precision}).ok());
    ASSERT_EQ(OpsOf(graph), "reprise.Attention");
    const Attributes& attributes = graph.node(graph.NodeIds()[0]).attributes;
    EXPECT_EQ(attributes.String(kPrecisionAttribute, ""), "bf16");
  }
}

TEST(RoundProductsTest, RelativeAttentionSumsInOneOrderWhereTheModelRounds) {
  for (const Precision precision : {Precision::kExact, Precision::kBf16, Precision::kInt8}) {
    Graph graph = ParseSpecialized(R"(graph {
      input %q: f32[2, 3, 8]
      %y: ? = reprise.RelativeAttention(%q, %q, %q) {num_heads = 2}
      output %y
    })");
    ASSERT_TRUE(Rounding(precision)->Run(graph).ok());
    const Attributes& attributes = graph.node(graph.NodeIds()[0]).attributes;
    EXPECT_EQ(attributes.Int("one_order", 0), precision == Precision::kExact ? 0 : 1);
    EXPECT_EQ(attributes.String(kPrecisionAttribute, ""), "");
  }
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
  for (const Precision precision : kPrecisions) {
    Graph graph = ParseSpecialized(kProduct);
    ASSERT_TRUE(RunCapturePasses(graph, {.precision = precision}).ok());
    ASSERT_EQ(OpsOf(graph), "reprise.Linear");
    const Attributes& attributes = graph.node(graph.NodeIds()[0]).attributes;
    EXPECT_EQ(attributes.String(kPrecisionAttribute, "exact"), PrecisionName(precision));
  }
}

}  // namespace
}  // namespace reprise
