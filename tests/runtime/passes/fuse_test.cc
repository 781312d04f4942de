#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/passes/passes.h"
#include "tests/runtime/passes/pass_test_util.h"

namespace reprise {
namespace {

// --- fuse_layer_norm ---

// `body` computes %y from %x [2, 3, 8]; %mean, %diff, %gamma, %beta, %epsilon, %one, %two, %half
// and %axes are there.
std::string NormGraph(absl::string_view body, absl::string_view axes = "-1") {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 8]
    param %gamma: f32[8] = p0
    param %beta: f32[8] = p1
    const %epsilon: f32[] = {1e-05}
    const %one: f32[] = {1}
    const %two: f32[] = {2}
    const %half: f32[] = {0.5}
    const %minus_half: f32[] = {-0.5}
    const %axes: i64[1] = {)",
                      axes, R"(}
    %mean: ? = ReduceMean(%x, %axes) {keepdims = 1}
    %diff: ? = Sub(%x, %mean)
    )",
                      body, R"(
    output %y
  })");
}

constexpr absl::string_view kNormalized = R"(graph {
    input %x: f32[2, 3, 8]
    param %gamma: f32[8] = p0
    param %beta: f32[8] = p1
    %y: ? = LayerNormalization(%x, %gamma, %beta) {axis = -1, epsilon = 1e-05}
    output %y
  })";

TEST(FuseLayerNormTest, TheFormsOfExportersBecomeOneNode) {
  const std::vector<std::string> bodies = {
      R"(%sq: ? = Pow(%diff, %two)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %std: ? = Sqrt(%add)
         %n: ? = Div(%diff, %std)
         %s: ? = Mul(%n, %gamma)
         %y: ? = Add(%s, %beta))",
      R"(%sq: ? = Mul(%diff, %diff)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%epsilon, %var)
         %std: ? = Pow(%add, %half)
         %n: ? = Div(%diff, %std)
         %s: ? = Mul(%gamma, %n)
         %y: ? = Add(%beta, %s))",
      R"(%other: ? = Sub(%x, %mean)
         %sq: ? = Pow(%other, %two)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %std: ? = Sqrt(%add)
         %inv: ? = Reciprocal(%std)
         %n: ? = Mul(%inv, %diff)
         %s: ? = Mul(%n, %gamma)
         %y: ? = Add(%s, %beta))",
      R"(%sq: ? = Pow(%diff, %two)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %std: ? = Sqrt(%add)
         %inv: ? = Div(%one, %std)
         %m: ? = Mul(%inv, %gamma)
         %s: ? = Mul(%diff, %m)
         %y: ? = Add(%s, %beta))",
      R"(%sq: ? = Mul(%diff, %diff)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %inv: ? = Pow(%add, %minus_half)
         %m: ? = Mul(%inv, %gamma)
         %s: ? = Mul(%x, %m)
         %shift: ? = Mul(%mean, %m)
         %rest: ? = Sub(%beta, %shift)
         %y: ? = Add(%s, %rest))",
  };
  for (const std::string& body : bodies) {
    ExpectRewrite(*FuseLayerNorm(), NormGraph(body), kNormalized);
    ExpectRewrite(*FuseLayerNorm(), NormGraph(body, "2"), kNormalized);
  }
}

TEST(FuseLayerNormTest, WithoutScaleTheScaleIsOnes) {
  ExpectRewrite(*FuseLayerNorm(), NormGraph(R"(%sq: ? = Pow(%diff, %two)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %std: ? = Sqrt(%add)
         %y: ? = Div(%diff, %std))"),
                R"(graph {
    input %x: f32[2, 3, 8]
    const %gamma: f32[8] = {1, 1, 1, 1, 1, 1, 1, 1}
    %y: ? = LayerNormalization(%x, %gamma) {axis = -1, epsilon = 1e-05}
    output %y
  })");
}

TEST(FuseLayerNormTest, NearlyTheFormStays) {
  constexpr absl::string_view kTorch = R"(%sq: ? = Pow(%diff, POWER)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %std: ? = Sqrt(%add)
         %n: ? = Div(NUMERATOR, %std)
         %s: ? = Mul(%n, %gamma)
         %y: ? = Add(%s, %beta))";
  const auto body = [&](absl::string_view power, absl::string_view numerator) {
    return absl::StrReplaceAll(kTorch, {{"POWER", power}, {"NUMERATOR", numerator}});
  };
  ExpectUnchanged(*FuseLayerNorm(), NormGraph(body("%half", "%diff")));
  ExpectUnchanged(*FuseLayerNorm(), NormGraph(body("%two", "%x")));
  ExpectUnchanged(*FuseLayerNorm(), NormGraph(body("%two", "%mean")));
  ExpectUnchanged(*FuseLayerNorm(), NormGraph(body("%two", "%diff"), "1"));
  // The mean of something else.
  ExpectUnchanged(*FuseLayerNorm(), NormGraph(R"(%z: ? = Neg(%x)
         %zmean: ? = ReduceMean(%z, %axes) {keepdims = 1}
         %d: ? = Sub(%x, %zmean)
         %sq: ? = Mul(%d, %d)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %std: ? = Sqrt(%add)
         %y: ? = Div(%d, %std))"));
}

TEST(FuseLayerNormTest, AScaleThatOthersReadStaysOutside) {
  const std::string text = NormGraph(R"(%sq: ? = Pow(%diff, %two)
         %var: ? = ReduceMean(%sq, %axes) {keepdims = 1}
         %add: ? = Add(%var, %epsilon)
         %std: ? = Sqrt(%add)
         %n: ? = Div(%diff, %std)
         %s: ? = Mul(%n, %gamma)
         %y: ? = Add(%s, %n))");
  ExpectSameAnswers(*FuseLayerNorm(), text);
}

// --- fuse_rms_norm ---

std::string RmsGraph(absl::string_view body) {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 8]
    param %gamma: f32[8] = p0
    const %epsilon: f32[] = {1e-06}
    const %one: f32[] = {1}
    const %two: f32[] = {2}
    const %minus_half: f32[] = {-0.5}
    const %axes: i64[1] = {-1}
    )",
                      body, "\n output %y\n}");
}

TEST(FuseRmsNormTest, TheFormsOfExportersBecomeOneNode) {
  const std::vector<std::string> bodies = {
      R"(%sq: ? = Pow(%x, %two)
         %mean: ? = ReduceMean(%sq, %axes)
         %add: ? = Add(%mean, %epsilon)
         %root: ? = Sqrt(%add)
         %inv: ? = Div(%one, %root)
         %n: ? = Mul(%x, %inv)
         %y: ? = Mul(%gamma, %n))",
      R"(%sq: ? = Mul(%x, %x)
         %mean: ? = ReduceMean(%sq, %axes)
         %add: ? = Add(%epsilon, %mean)
         %root: ? = Sqrt(%add)
         %n: ? = Div(%x, %root)
         %y: ? = Mul(%n, %gamma))",
      R"(%sq: ? = Mul(%x, %x)
         %mean: ? = ReduceMean(%sq, %axes)
         %add: ? = Add(%epsilon, %mean)
         %inv: ? = Pow(%add, %minus_half)
         %n: ? = Mul(%inv, %x)
         %y: ? = Mul(%n, %gamma))",
  };
  for (const std::string& body : bodies) {
    ExpectRewrite(*FuseRmsNorm(), RmsGraph(body), R"(graph {
    input %x: f32[2, 3, 8]
    param %gamma: f32[8] = p0
    %y: ? = RMSNormalization(%x, %gamma) {axis = -1, epsilon = 1e-06}
    output %y
  })");
  }
}

TEST(FuseRmsNormTest, NearlyTheFormStays) {
  ExpectUnchanged(*FuseRmsNorm(), RmsGraph(R"(%z: ? = Neg(%x)
         %sq: ? = Mul(%x, %x)
         %mean: ? = ReduceMean(%sq, %axes)
         %add: ? = Add(%epsilon, %mean)
         %root: ? = Sqrt(%add)
         %n: ? = Div(%z, %root)
         %y: ? = Mul(%n, %gamma))"));
  ExpectUnchanged(*FuseRmsNorm(), RmsGraph(R"(%z: ? = Neg(%x)
         %sq: ? = Mul(%x, %z)
         %mean: ? = ReduceMean(%sq, %axes)
         %add: ? = Add(%epsilon, %mean)
         %root: ? = Sqrt(%add)
         %n: ? = Div(%x, %root)
         %y: ? = Mul(%n, %gamma))"));
}

// --- fuse_gelu ---

std::string GeluGraph(absl::string_view body) {
  return absl::StrCat(R"(graph {
    input %x: f32[4, 8]
    const %half: f32[] = {0.5}
    const %one: f32[] = {1}
    const %two: f32[] = {2}
    const %three: f32[] = {3}
    const %root2: f32[] = {1.4142135}
    const %inv_root2: f32[] = {0.70710677}
    const %c: f32[] = {0.044715}
    const %k: f32[] = {0.7978846}
    )",
                      body, "\n output %y\n}");
}

std::string Gelu(absl::string_view approximate) {
  return absl::StrCat("graph {\n input %x: f32[4, 8]\n %y: ? = Gelu(%x) {approximate = \"",
                      approximate, "\"}\n output %y\n}");
}

TEST(FuseGeluTest, TheErfFormsBecomeGelu) {
  const std::vector<std::string> bodies = {
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half))",
      R"(%a: ? = Mul(%x, %inv_root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%one, %t)
         %d: ? = Mul(%half, %b)
         %y: ? = Mul(%x, %d))",
      R"(%h: ? = Mul(%x, %half)
         %a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %y: ? = Mul(%h, %b))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Mul(%t, %half)
         %d: ? = Add(%b, %half)
         %y: ? = Mul(%d, %x))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Div(%d, %two))",
  };
  for (const std::string& body : bodies) ExpectRewrite(*FuseGelu(), GeluGraph(body), Gelu("none"));
}

TEST(FuseGeluTest, TheTanhFormsBecomeGelu) {
  const std::vector<std::string> bodies = {
      R"(%p: ? = Pow(%x, %three)
         %a: ? = Mul(%p, %c)
         %b: ? = Add(%x, %a)
         %d: ? = Mul(%b, %k)
         %t: ? = Tanh(%d)
         %e: ? = Add(%t, %one)
         %h: ? = Mul(%x, %half)
         %y: ? = Mul(%h, %e))",
      R"(%xx: ? = Mul(%x, %x)
         %p: ? = Mul(%xx, %x)
         %a: ? = Mul(%c, %p)
         %b: ? = Add(%a, %x)
         %d: ? = Mul(%k, %b)
         %t: ? = Tanh(%d)
         %e: ? = Add(%one, %t)
         %f: ? = Mul(%half, %e)
         %y: ? = Mul(%x, %f))",
      R"(%kx: ? = Mul(%x, %k)
         %cx: ? = Mul(%x, %c)
         %cxx: ? = Mul(%cx, %x)
         %i: ? = Add(%cxx, %one)
         %d: ? = Mul(%kx, %i)
         %t: ? = Tanh(%d)
         %e: ? = Add(%t, %one)
         %h: ? = Mul(%x, %half)
         %y: ? = Mul(%h, %e))",
  };
  for (const std::string& body : bodies) {
    ExpectRewrite(*FuseGelu(), GeluGraph(body), Gelu("tanh"), {.tolerance = 1e-5});
  }
}

TEST(FuseGeluTest, NearlyTheFormStays) {
  const std::vector<std::string> bodies = {
      R"(%a: ? = Div(%x, %two)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %half)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %z: ? = Neg(%x)
         %d: ? = Mul(%z, %b)
         %y: ? = Mul(%d, %half))",
      R"(%p: ? = Pow(%x, %two)
         %a: ? = Mul(%p, %c)
         %b: ? = Add(%x, %a)
         %d: ? = Mul(%b, %k)
         %t: ? = Tanh(%d)
         %e: ? = Add(%t, %one)
         %h: ? = Mul(%x, %half)
         %y: ? = Mul(%h, %e))",
  };
  for (const std::string& body : bodies) ExpectUnchanged(*FuseGelu(), GeluGraph(body));
}

TEST(FuseGeluTest, AnInnerValueThatIsAnOutputStays) {
  ExpectUnchanged(*FuseGelu(), GeluGraph(R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half)
         output %t)"));
}

// --- fuse_linear, fuse_residual ---

TEST(FuseLinearTest, MatMulBiasAndActivationBecomeOneNode) {
  const std::vector<std::pair<std::string, std::string>> activations = {
      {"%y: ? = Relu(%a)", "relu"},
      {"%y: ? = Tanh(%a)", "tanh"},
      {"%y: ? = Sigmoid(%a)", "sigmoid"},
      {"%y: ? = Gelu(%a)", "gelu"},
      {"%y: ? = Gelu(%a) {approximate = \"tanh\"}", "gelu_tanh"},
      {"%s: ? = Sigmoid(%a)\n %y: ? = Mul(%a, %s)", "silu"},
      {"%s: ? = Sigmoid(%a)\n %y: ? = Mul(%s, %a)", "silu"},
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

// --- fuse_embedding, fuse_add_layer_norm ---

TEST(FuseEmbeddingTest, LookupsAndTheirAddsBecomeOneNode) {
  ExpectRewrite(*FuseEmbedding(), R"(graph {
    input %words: i64[2, 3]
    input %types: i64[2, 3]
    param %word_table: f32[9, 4] = p0
    param %type_table: f32[2, 4] = p1
    param %position_table: f32[7, 4] = p2
    const %positions: i64[1, 3] = {0, 1, 2}
    %a: ? = Gather(%word_table, %words)
    %b: ? = Gather(%type_table, %types) {axis = 0}
    %c: ? = Gather(%position_table, %positions)
    %d: ? = Add(%a, %b)
    %e: ? = Add(%c, %d)
    output %e
  })",
                R"(graph {
    input %words: i64[2, 3]
    input %types: i64[2, 3]
    param %word_table: f32[9, 4] = p0
    param %type_table: f32[2, 4] = p1
    param %position_table: f32[7, 4] = p2
    const %positions: i64[1, 3] = {0, 1, 2}
    %e: ? = reprise.EmbeddingSum(%position_table, %positions, %word_table, %words, %type_table, %types)
    output %e
  })");
}

TEST(FuseEmbeddingTest, AnotherAxisOrASharedLookupStays) {
  ExpectUnchanged(*FuseEmbedding(), R"(graph {
    input %ids: i64[4]
    param %t: f32[4, 4] = p0
    %a: ? = Gather(%t, %ids) {axis = 1}
    %b: ? = Gather(%t, %ids)
    %c: ? = Add(%a, %b)
    output %c
  })");
  ExpectUnchanged(*FuseEmbedding(), R"(graph {
    input %ids: i64[4]
    param %t: f32[4, 4] = p0
    param %u: f32[4, 4] = p1
    %a: ? = Gather(%t, %ids)
    %b: ? = Gather(%u, %ids)
    %c: ? = Add(%a, %b)
    output %c
    output %a
  })");
  ExpectUnchanged(*FuseEmbedding(), R"(graph {
    input %ids: i64[4]
    input %t: f32[4, 4]
    param %u: f32[4, 4] = p1
    %a: ? = Gather(%t, %ids)
    %b: ? = Gather(%u, %ids)
    %c: ? = Add(%a, %b)
    output %c
  })");
}

std::string AddNorm(absl::string_view b_type, absl::string_view rest) {
  return absl::StrCat(R"(graph {
    input %a: f32[2, 8]
    input %b: f32)",
                      b_type, R"(
    param %gamma: f32[8] = p0
    param %beta: f32[8] = p1
    %s: ? = Add(%a, %b)
    %y: ? = LayerNormalization(%s, %gamma, %beta) {axis = -1, epsilon = 1e-12}
    )",
                      rest, "\n output %y\n}");
}

TEST(FuseAddLayerNormTest, ASumAndItsNormBecomeOneNode) {
  ExpectRewrite(*FuseAddLayerNorm(), AddNorm("[2, 8]", ""), R"(graph {
    input %a: f32[2, 8]
    input %b: f32[2, 8]
    param %gamma: f32[8] = p0
    param %beta: f32[8] = p1
    %y: ? = reprise.AddLayerNorm(%a, %b, %gamma, %beta) {axis = -1, epsilon = 1e-12}
    output %y
  })");
}

TEST(FuseAddLayerNormTest, ASumThatOthersReadIsTheSecondResult) {
  ExpectRewrite(*FuseAddLayerNorm(), AddNorm("[2, 8]", "%z: ? = Relu(%s)\n output %z"),
                R"(graph {
    input %a: f32[2, 8]
    input %b: f32[2, 8]
    param %gamma: f32[8] = p0
    param %beta: f32[8] = p1
    %y: ?, %s: ? = reprise.AddLayerNorm(%a, %b, %gamma, %beta) {axis = -1, epsilon = 1e-12}
    %z: ? = Relu(%s)
    output %z
    output %y
  })");
}

TEST(FuseAddLayerNormTest, BroadcastSumsStay) {
  ExpectUnchanged(*FuseAddLayerNorm(), AddNorm("[8]", ""));
  ExpectUnchanged(*FuseAddLayerNorm(), AddNorm("[1, 8]", ""));
  ExpectUnchanged(*FuseAddLayerNorm(), AddNorm("[3, 2, 8]", ""));
}

}  // namespace
}  // namespace reprise
