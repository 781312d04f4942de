#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(FuseLinearTest, MatMulBiasAndActivationBecomeOneNode) {
  const std::vector<std::pair<std::string, std::string>> activations = {
      {"%y: ? = Relu(%a)", "relu"},
      {"%y: ? = Tanh(%a)", "tanh"},
      {"%y: ? = Sigmoid(%a)", "sigmoid"},
      {"%y: ? = Gelu(%a)", "gelu"},
      {"%y: ? = Gelu(%a) {approximate = \"tanh\"}", "gelu_tanh"},
      {"%s: ? = Sigmoid(%a)\n %y: ? = Mul(%a, %s)", "silu"},
      {"%s: ? = Sigmoid(%a)\n %y: ? = Mul(%s, %a)", "silu"},
      {"%y: ? = com.microsoft.QuickGelu(%a) {alpha = 1.0}", "silu"},
      {"%y: ? = com.microsoft.QuickGelu(%a) {alpha = 1.702}", "quick_gelu"},
      {"%y: ? = com.microsoft.QuickGelu(%a)", "quick_gelu"},
  };
  for (const auto& [nodes, name] : activations) {
    for (const char* add : {"Add(%m, %b)", "Add(%b, %m)"}) {
      ExpectRewrite(*FuseLinear(),
                    absl::StrCat(R"(graph {
        input %x: f32[2, 3, 4]
        param %w: f32[4, 5] = p0
        param %b: f32[5] = p1
        %m: ? = MatMul(%x, %w)
        %a: ? = )",
                                 add, "\n", nodes, "\n output %y\n}"),
                    absl::StrCat(R"(graph {
        input %x: f32[2, 3, 4]
        param %w: f32[4, 5] = p0
        param %b: f32[5] = p1
        %y: ? = reprise.Linear(%x, %w, %b) {activation = ")",
                                 name, "\"}\n output %y\n}"));
    }
  }
}

Graph Fused(const std::string& text) {
  Graph graph = ParseSpecialized(text);
  EXPECT_TRUE(FuseLinear()->Run(graph).ok());
  return graph;
}

// Weights of the model in front of `nodes`, from a product %m to %y.
std::string WithColumns(absl::string_view nodes) {
  return absl::StrCat(R"(graph {
    input %x: f32[6, 4]
    param %w: f32[4, 5] = p0
    param %f: f32[5] = p1
    param %b: f32[1, 5] = p2
    param %v: f32[5] = p3
    const %c: f32[5] = {0.5, 2.0, 0.25, 1.0, 3.0}
    const %half: f32[] = {0.5}
    %m: ? = MatMul(%x, %w)
    )",
                      nodes, "\n output %y\n}");
}

TEST(FuseLinearTest, FactorsOfColumnsGoIntoTheWeights) {
  for (const char* nodes :
       {"%y: ? = Mul(%m, %f)", "%y: ? = Mul(%c, %m)",
        "%a: ? = Add(%m, %b)\n%s: ? = Mul(%a, %f)\n%y: ? = Add(%s, %v)",
        "%s: ? = Mul(%m, %f)\n%a: ? = Add(%s, %b)\n%t: ? = Mul(%a, %c)\n%y: ? = Relu(%t)",
        "%a: ? = Add(%m, %v)\n%n: ? = BatchNormalization(%a, %f, %v, %f, %c)\n%y: ? = Relu(%n)",
        "%y: ? = BatchNormalization(%m, %f, %v, %f, %c) {epsilon = 0.01}"}) {
    SCOPED_TRACE(nodes);
    ExpectSameAnswers(*FuseLinear(), WithColumns(nodes), {.relative = 1e-5});
    const Graph graph = Fused(WithColumns(nodes));
    EXPECT_EQ(graph.NodeIds().size(), 1);
    EXPECT_EQ(CountOps(graph, "reprise.Linear"), 1);
  }
}

TEST(FuseLinearTest, OtherFactorsStayOutside) {
  // One for all, one of each row, of a product that others read.
  for (const char* nodes :
       {"%y: ? = Mul(%m, %half)",
        "const %r: f32[6, 1] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}\n%y: ? = Mul(%m, %r)",
        "%s: ? = Mul(%m, %f)\n%y: ? = Sub(%s, %m)"}) {
    SCOPED_TRACE(nodes);
    ExpectSameAnswers(*FuseLinear(), WithColumns(nodes));
    const Graph graph = Fused(WithColumns(nodes));
    EXPECT_EQ(CountOps(graph, "Mul"), 1);
  }
}

// They would be held twice.
TEST(FuseLinearTest, WeightsOfTwoProductsTakeNoFactors) {
  const std::string text = R"(graph {
    input %x: f32[6, 5]
    param %w: f32[5, 5] = p0
    param %f: f32[5] = p1
    %m: ? = MatMul(%x, %w)
    %s: ? = Mul(%m, %f)
    %y: ? = MatMul(%s, %w)
    output %y
  })";
  ExpectSameAnswers(*FuseLinear(), text, {.relative = 1e-5});
  EXPECT_EQ(CountOps(Fused(text), "Mul"), 1);
}

// They would be held a second time, as floats.
TEST(FuseLinearTest, WeightsStoredInFewerBitsTakeNoFactors) {
  const auto run = [](absl::string_view weight) {
    const Graph graph = Fused(absl::StrCat("graph {\n input %x: f32[6, 4]\n", weight, R"(
      param %f: f32[5] = p1
      param %b: f32[5] = p2
      %m: ? = MatMul(%x, %w)
      %a: ? = Add(%m, %b)
      %y: ? = Mul(%a, %f)
      output %y
    })"));
    return CountOps(graph, "Mul");
  };
  EXPECT_EQ(run("param %w: f32[4, 5] = Transpose{perm = [1, 0]}(f32[5, 4] p0)"), 0);
  EXPECT_EQ(run("param %w: f32[4, 5] = Cast{to = 1}(f16[4, 5] p0)"), 1);
  EXPECT_EQ(run("param %w: f32[4, 5] = DequantizeLinear(i8[4, 5] p0, f32[]{0.5})"), 1);
}

TEST(FuseLinearTest, ABatchNormalizationOfOtherRowsIsAProductAndASum) {
  const std::string text = R"(graph {
    input %x: f32[2, 3]
    param %scale: f32[3] = p0
    param %shift: f32[3] = p1
    param %mean: f32[3] = p2
    const %variance: f32[3] = {0.5, 2.0, 0.25}
    %n: ? = BatchNormalization(%x, %scale, %shift, %mean, %variance) {epsilon = 0.01}
    %y: ? = Exp(%n)
    output %y
  })";
  ExpectSameAnswers(*FuseLinear(), text, {.relative = 1e-5});
  const Graph graph = Fused(text);
  EXPECT_EQ(CountOps(graph, "BatchNormalization"), 0);
  EXPECT_EQ(CountOps(graph, "Mul"), 1);
}

TEST(FuseLinearTest, NearlyTheFormStays) {
  const std::vector<std::string> graphs = {
      // The right side is data.
      R"(input %x: f32[3, 4]
         input %w: f32[4, 5]
         %y: ? = MatMul(%x, %w))",
      // A batch of weights.
      R"(input %x: f32[2, 3, 4]
         param %w: f32[2, 4, 5] = p0
         %y: ? = MatMul(%x, %w))",
      // A vector.
      R"(input %x: f32[4]
         param %w: f32[4, 5] = p0
         %y: ? = MatMul(%x, %w))",
  };
  for (const std::string& body : graphs) {
    ExpectUnchanged(*FuseLinear(), absl::StrCat("graph {\n", body, "\n output %y\n}"));
  }
}

TEST(FuseLinearTest, WhatIsNoBiasStaysOutside) {
  const auto expect_no_bias = [](absl::string_view bias) {
    const std::string text = absl::StrCat("graph {\n input %x: f32[5, 4]\n", bias, R"(
      param %w: f32[4, 5] = p0
      %m: ? = MatMul(%x, %w)
      %y: ? = Add(%m, %b)
      output %y
    })");
    ExpectSameAnswers(*FuseLinear(), text);
    Graph graph = ParseSpecialized(text);
    ASSERT_TRUE(FuseLinear()->Run(graph).ok());
    EXPECT_EQ(CountOps(graph, "Add"), 1);
  };
  expect_no_bias("input %b: f32[5]");
  expect_no_bias("param %b: f32[5, 1] = p1");
  expect_no_bias("param %b: f32[5, 5] = p1");
  expect_no_bias("param %b: f32[2, 1, 5] = p1");
  expect_no_bias("const %b: f32[] = {3}");
}

TEST(FuseLinearTest, AProductThatOthersReadKeepsItsOwnResult) {
  ExpectRewrite(*FuseLinear(), R"(graph {
    input %x: f32[3, 4]
    param %w: f32[4, 5] = p0
    param %b: f32[5] = p1
    %m: ? = MatMul(%x, %w)
    %y: ? = Add(%m, %b)
    output %m
    output %y
  })",
                R"(graph {
    input %x: f32[3, 4]
    param %w: f32[4, 5] = p0
    param %b: f32[5] = p1
    %m: ? = reprise.Linear(%x, %w) {activation = "none"}
    %y: ? = Add(%m, %b)
    output %m
    output %y
  })");
}

TEST(FuseResidualTest, AnAddOfEqualShapesBecomesTheResidual) {
  for (const char* add : {"Add(%y, %r)", "Add(%r, %y)"}) {
    ExpectRewrite(*FuseResidual(),
                  absl::StrCat(R"(graph {
      input %x: f32[3, 4]
      input %r: f32[3, 5]
      param %w: f32[4, 5] = p0
      %y: ? = reprise.Linear(%x, %w) {activation = "relu"}
      %z: ? = )",
                               add, "\n output %z\n}"),
                  R"(graph {
      input %x: f32[3, 4]
      input %r: f32[3, 5]
      param %w: f32[4, 5] = p0
      %z: ? = reprise.Linear(%x, %w, _, %r) {activation = "relu"}
      output %z
    })");
  }
}

TEST(FuseResidualTest, BroadcastSharedAndSelfAddsStay) {
  const auto graph = [](absl::string_view residual, absl::string_view rest) {
    return absl::StrCat("graph {\n input %x: f32[3, 5]\n", residual, R"(
      param %w: f32[5, 5] = p0
      %y: ? = reprise.Linear(%x, %w) {activation = "none"}
      )",
                        rest, "\n output %z\n}");
  };
  ExpectUnchanged(*FuseResidual(), graph("input %r: f32[5]", "%z: ? = Add(%y, %r)"));
  ExpectUnchanged(*FuseResidual(), graph("input %r: f32[2, 3, 5]", "%z: ? = Add(%y, %r)"));
  ExpectUnchanged(*FuseResidual(), graph("", "%z: ? = Add(%y, %y)"));
  ExpectUnchanged(*FuseResidual(), graph("input %r: f32[3, 5]", "%z: ? = Add(%y, %r)\n output %y"));
  // The residual is made from the product itself.
  ExpectUnchanged(*FuseResidual(), graph("", "%r: ? = Relu(%y)\n %z: ? = Add(%y, %r)"));
}

}  // namespace
}  // namespace reprise
