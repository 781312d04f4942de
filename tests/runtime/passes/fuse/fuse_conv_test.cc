#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

constexpr char kConv[] = R"(graph {
  input %x: f32[2, 3, 5, 4]
  param %w: f32[6, 3, 3, 3] = p0
  param %b: f32[6] = p1
  %c: ? = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
)";

TEST(FuseConvTest, ActivationJoinsTheConvolution) {
  const std::vector<std::pair<std::string, std::string>> activations = {
      {"%y: ? = Relu(%c)", "relu"},
      {"%y: ? = Tanh(%c)", "tanh"},
      {"%y: ? = Sigmoid(%c)", "sigmoid"},
      {"%y: ? = Gelu(%c)", "gelu"},
      {"%y: ? = HardSwish(%c)", "hard_swish"},
      {"%y: ? = LeakyRelu(%c) {alpha = 0.25}", "leaky_relu"},
      {"%y: ? = Elu(%c) {alpha = 0.75}", "elu"},
      {"%y: ? = Elu(%c)", "elu"},
      {"%y: ? = Mish(%c)", "mish"},
      {"const %l: f32[] = {0.0}\nconst %h: f32[] = {6.0}\n%y: ? = Clip(%c, %l, %h)", "clip"},
      {"const %h: f32[] = {0.5}\n%y: ? = Clip(%c, _, %h)", "clip"},
      {"%s: ? = Sigmoid(%c)\n%y: ? = Mul(%c, %s)", "silu"},
      {"%s: ? = HardSigmoid(%c) {alpha = 0.16666667, beta = 0.5}\n%y: ? = Mul(%s, %c)",
       "hard_swish"},
  };
  for (const auto& [nodes, name] : activations) {
    SCOPED_TRACE(nodes);
    const std::string text = absl::StrCat(kConv, nodes, "\n output %y\n}");
    ExpectSameAnswers(*FuseConv(), text);
    Graph graph = ParseSpecialized(text);
    ASSERT_TRUE(FuseConv()->Run(graph).ok());
    EXPECT_EQ(OpsOf(graph), "reprise.Conv");
    const std::string activation = absl::StrCat("activation = \"", name, "\"");
    EXPECT_THAT(RunPass(*FuseConv(), text), testing::HasSubstr(activation));
  }
}

TEST(FuseConvTest, ResidualJoinsTheLaterOfTwoConvolutionsAndTheActivationFollows) {
  const std::string text = absl::StrCat(kConv, R"(
    param %v: f32[6, 3, 1, 1] = p2
    %d: ? = Conv(%x, %v)
    %a: ? = Add(%c, %d)
    %y: ? = Relu(%a)
    output %y
  })");
  ExpectSameAnswers(*FuseConv(), text);
  Graph graph = ParseSpecialized(text);
  ASSERT_TRUE(FuseConv()->Run(graph).ok());
  EXPECT_EQ(OpsOf(graph), "Conv reprise.Conv");
}

TEST(FuseConvTest, BatchNormalizationAndActivationJoinATransposedConvolution) {
  const auto text = [](const char* conv, int group) {
    return absl::StrCat(R"(graph {
      input %x: f32[2, 4, 5, 4]
      param %w: f32[4, )",
                        6 / group, R"(, 3, 3] = p0
      param %b: f32[6] = p1
      param %scale: f32[6] = p2
      param %shift: f32[6] = p3
      param %mean: f32[6] = p4
      const %variance: f32[6] = {0.5, 1.0, 2.0, 0.25, 4.0, 1.5}
      %c: ? = )",
                        conv, " {strides = [2, 2], pads = [1, 1, 1, 1], group = ", group, R"(}
      %n: ? = BatchNormalization(%c, %scale, %shift, %mean, %variance) {epsilon = 0.01}
      %y: ? = Relu(%n)
      output %y
    })");
  };
  for (const char* conv : {"ConvTranspose(%x, %w)", "ConvTranspose(%x, %w, %b)"}) {
    for (const int group : {1, 2}) {
      SCOPED_TRACE(text(conv, group));
      ExpectSameAnswers(*FuseConv(), text(conv, group));
      Graph graph = ParseSpecialized(text(conv, group));
      ASSERT_TRUE(FuseConv()->Run(graph).ok());
      EXPECT_EQ(OpsOf(graph), group == 1 ? "reprise.ConvTranspose" : "ConvTranspose reprise.Conv");
    }
  }
}

TEST(FuseConvTest, WhatIsAddedToATransposedConvolutionStaysBehindIt) {
  const std::string text = R"(graph {
    input %x: f32[2, 4, 5]
    param %w: f32[4, 4, 3] = p0
    %c: ? = ConvTranspose(%x, %w) {pads = [1, 1]}
    %a: ? = Add(%c, %x)
    %y: ? = Relu(%a)
    output %y
  })";
  Graph graph = ParseSpecialized(text);
  ASSERT_TRUE(FuseConv()->Run(graph).ok());
  EXPECT_EQ(OpsOf(graph), "ConvTranspose Add Relu");
}

TEST(FuseConvTest, BatchNormalizationGoesIntoTheWeights) {
  for (const char* conv : {"Conv(%x, %w)", "Conv(%x, %w, %b)", "Conv(%x, %w, _)"}) {
    const std::string text = absl::StrCat(R"(graph {
      input %x: f32[2, 3, 5, 4]
      param %w: f32[6, 3, 3, 3] = p0
      param %b: f32[6] = p1
      param %scale: f32[6] = p2
      param %shift: f32[6] = p3
      param %mean: f32[6] = p4
      const %variance: f32[6] = {0.5, 1.0, 2.0, 0.25, 4.0, 1.5}
      %c: ? = )",
                                          conv, R"(
      %n: ? = BatchNormalization(%c, %scale, %shift, %mean, %variance) {epsilon = 0.001}
      %y: ? = Relu(%n)
      output %y
    })");
    ExpectSameAnswers(*FuseConv(), text, {.relative = 1e-5});
    Graph graph = ParseSpecialized(text);
    ASSERT_TRUE(FuseConv()->Run(graph).ok());
    EXPECT_EQ(OpsOf(graph), "reprise.Conv");
  }
}

TEST(FuseConvTest, ConstantsOfEachMapGoIntoWeightsAndBias) {
  for (const char* conv :
       {"Conv(%x, %w, %b)", "Conv(%x, %w)", "ConvTranspose(%x, %v, %b)", "ConvTranspose(%x, %v)"}) {
    for (const char* nodes : {
             "%y: ? = Mul(%c, %m)",
             "%y: ? = Add(%n, %c)",
             "%s: ? = Sub(%c, %m)\n%y: ? = Div(%s, %n)",
             "%s: ? = Mul(%one, %c)\n%t: ? = Sub(%s, %m)\n%y: ? = Relu(%t)",
             "%s: ? = BatchNormalization(%c, %b, %b, %b, %b)\n%y: ? = Mul(%s, %n)",
         }) {
      const std::string text = absl::StrCat(R"(graph {
        input %x: f32[2, 3, 5, 4]
        param %w: f32[6, 3, 3, 3] = p0
        param %v: f32[3, 6, 3, 3] = p1
        const %b: f32[6] = {0.5, 1.0, 2.0, 0.25, 4.0, 1.5}
        const %m: f32[1, 6, 1, 1] = {2.0, -1.0, 0.5, 3.0, 0.25, 1.0}
        const %n: f32[6, 1, 1] = {1.5, 1.0, -2.0, 0.75, 3.0, 5.0}
        const %one: f32[1, 1] = {3.0}
        %c: ? = )",
                                            conv, "\n", nodes, "\n output %y\n}");
      SCOPED_TRACE(text);
      ExpectSameAnswers(*FuseConv(), text, {.relative = 1e-5});
      Graph graph = ParseSpecialized(text);
      ASSERT_TRUE(FuseConv()->Run(graph).ok());
      EXPECT_EQ(OpsOf(graph).rfind("reprise.Conv", 0), 0) << OpsOf(graph);
      EXPECT_EQ(OpsOf(graph).find(' '), std::string::npos) << OpsOf(graph);
    }
  }
}

TEST(FuseConvTest, ZerosAroundPlanesArePadding) {
  for (const char* pads : {"0, 0, 0, 0, 0, 0, 1, 1", "0, 0, 1, 2, 0, 0, 0, 3"}) {
    for (const char* attributes :
         {"strides = [2, 2]", "pads = [1, 0, 1, 1]", "auto_pad = \"VALID\"", "group = 3"}) {
      for (const char* value : {"", ", %zero"}) {
        const std::string text =
            absl::StrCat(R"(graph {
          input %x: f32[2, 3, 5, 4]
          param %w: f32[6, )",
                         attributes[0] == 'g' ? 1 : 3, R"(, 3, 3] = p0
          const %around: i64[8] = {)",
                         pads, R"(}
          const %zero: f32[] = {0.0}
          %p: ? = Pad(%x, %around)",
                         value, ")\n%y: ? = Conv(%p, %w) {", attributes, "}\n output %y\n}");
        SCOPED_TRACE(text);
        ExpectSameAnswers(*FuseConv(), text);
        Graph graph = ParseSpecialized(text);
        ASSERT_TRUE(FuseConv()->Run(graph).ok());
        EXPECT_EQ(OpsOf(graph), "reprise.Conv");
      }
    }
  }
}

TEST(FuseConvTest, OtherPadsStay) {
  for (const char* nodes : {
           "const %a: i64[8] = {0, 0, 1, 1, 0, 0, 1, 1}\n%p: ? = Pad(%x, %a) {mode = \"edge\"}",
           "const %a: i64[8] = {0, 0, 1, 1, 0, 0, 1, 1}\nconst %one: f32[] = {1.0}\n"
           "%p: ? = Pad(%x, %a, %one)",
           "const %a: i64[8] = {0, 0, -1, 0, 0, 0, 1, 1}\n%p: ? = Pad(%x, %a)",
           "const %a: i64[8] = {1, 0, 0, 0, 0, 0, 1, 1}\n%p: ? = Pad(%x, %a)",
           "const %a: i64[2] = {1, 1}\nconst %at: i64[1] = {3}\n%p: ? = Pad(%x, %a, _, %at)",
       }) {
    ExpectUnchanged(*FuseConv(), absl::StrCat(R"(graph {
      input %x: f32[2, 3, 5, 4]
      param %w: f32[6, 3, 3, 3] = p0
    )",
                                              nodes, "\n%y: ? = Conv(%p, %w)\noutput %y\n}"));
  }
}

TEST(FuseConvTest, ALoneBatchNormalizationIsAConvolutionOfOneTap) {
  for (const char* shape : {"2, 3, 5, 4", "2, 3, 7", "1, 3, 2, 3, 4"}) {
    for (const char* behind : {"%y: ? = Relu(%n)", "%y: ? = Add(%n, %x)", "%y: ? = Exp(%n)"}) {
      const std::string text = absl::StrCat("graph {\n input %x: f32[", shape, R"(]
        param %scale: f32[3] = p0
        param %shift: f32[3] = p1
        param %mean: f32[3] = p2
        const %variance: f32[3] = {0.5, 2.0, 0.25}
        %n: ? = BatchNormalization(%x, %scale, %shift, %mean, %variance) {epsilon = 0.01}
        )",
                                            behind, "\n output %y\n}");
      SCOPED_TRACE(text);
      ExpectSameAnswers(*FuseConv(), text, {.relative = 1e-5});
      EXPECT_THAT(RunPass(*FuseConv(), text), testing::Not(testing::HasSubstr("Normalization")));
    }
  }
  const std::string of_data = R"(graph {
    input %x: f32[2, 3, 4]
    input %m: f32[3]
    param %b: f32[3] = p0
    %y: ? = BatchNormalization(%x, %b, %b, %m, %b)
    output %y
  })";
  ExpectUnchanged(*FuseConv(), of_data);
  // No window fits into an empty plane.
  for (const char* shape : {"2, 3, 0, 4", "2, 3, 0", "0, 3, 4"}) {
    ExpectUnchanged(*FuseConv(), absl::StrCat("graph {\n input %x: f32[", shape, R"(]
      param %b: f32[3] = p0
      %y: ? = BatchNormalization(%x, %b, %b, %b, %b)
      output %y
    })"));
  }
}

TEST(FuseConvTest, NearlyTheFormStays) {
  for (const char* nodes : {
           // Nothing follows, or another node reads its result.
           "output %c",
           "%y: ? = Relu(%c)\noutput %y\noutput %c",
           "%y: ? = Relu(%c)\n%z: ? = Tanh(%c)\noutput %y\noutput %z",
           // Sums that are no residual.
           "input %r: f32[1, 6, 5, 4]\n%y: ? = Add(%c, %r)\noutput %y",
           "input %r: f32[2, 2, 6, 5, 4]\n%y: ? = Add(%c, %r)\noutput %y",
           "param %r: f32[2, 6, 5, 4] = p2\n%y: ? = Add(%c, %r)\noutput %y",
           "%y: ? = Add(%c, %c)\noutput %y",
           // Constants that are not of each map, or change the shape, or are divided.
           "param %r: f32[5, 1] = p2\n%y: ? = Mul(%c, %r)\noutput %y",
           "param %r: f32[2, 1, 1, 1] = p2\n%y: ? = Mul(%c, %r)\noutput %y",
           "param %r: f32[1, 1, 6, 1, 1] = p2\n%y: ? = Mul(%c, %r)\noutput %y",
           "param %r: f32[6, 1, 1] = p2\n%y: ? = Div(%r, %c)\noutput %y",
           "input %r: f32[6, 1, 1]\n%y: ? = Mul(%c, %r)\noutput %y",
           // Bounds and statistics that are data.
           "input %h: f32[]\n%y: ? = Clip(%c, _, %h)\noutput %y",
           "input %m: f32[6]\n%y: ? = BatchNormalization(%c, %b, %b, %m, %b)\noutput %y",
           // These are not the gates that they look like.
           "%s: ? = HardSigmoid(%c) {alpha = 0.2}\n%y: ? = Mul(%c, %s)\noutput %y",
           "%s: ? = Sigmoid(%c)\n%y: ? = Mul(%c, %s)\noutput %y\noutput %s",
       }) {
    ExpectUnchanged(*FuseConv(), absl::StrCat(kConv, nodes, "\n}"));
  }
}

}  // namespace
}  // namespace reprise
