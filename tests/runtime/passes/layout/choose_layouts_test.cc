#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/layout/layout_passes.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

constexpr SameAnswersOptions kNear = {.tolerance = 1e-4, .relative = 1e-5};

std::string OpsInLayouts(const std::string& text) {
  Graph graph = ParseSpecialized(text);
  EXPECT_TRUE(ChooseLayouts()->Run(graph).ok());
  EXPECT_TRUE(graph.Compact());
  EXPECT_TRUE(Canonicalize()->Run(graph).ok());
  EXPECT_TRUE(EliminateDead()->Run(graph).ok());
  EXPECT_TRUE(graph.Compact());
  return OpsOf(graph);
}

int CountTransposes(const std::string& text) {
  int transposes = 0;
  for (const absl::string_view op : absl::StrSplit(OpsInLayouts(text), ' ')) {
    transposes += op == "Transpose" ? 1 : 0;
  }
  return transposes;
}

// Narrow planes of many channels, between convolutions of single elements: as in MobileNets.
TEST(ChooseLayoutsTest, SmallPlanesOfManyChannelsAreTurnedOnce) {
  const std::string text = R"(graph {
    input %x: f32[1, 64, 14, 14]
    param %u: f32[192, 64, 1, 1] = p0
    param %v: f32[192, 1, 3, 3] = p1
    param %w: f32[64, 192, 1, 1] = p2
    param %b: f32[64] = p3
    %c: ? = reprise.Conv(%x, %u) {activation = "hard_swish"}
    %d: ? = reprise.Conv(%c, %v) {group = 192, pads = [1, 1, 1, 1], activation = "relu"}
    %y: ? = reprise.Conv(%d, %w, %b, %x)
    output %y
  })";
  ExpectSameAnswers(*ChooseLayouts(), text, kNear);
  EXPECT_EQ(OpsInLayouts(text), "Transpose reprise.Conv reprise.Conv reprise.Linear Transpose");
}

// Scales of channels made of their averages, as squeeze and excitation has them.
TEST(ChooseLayoutsTest, WhatScalesChannelsGoesAlong) {
  const std::string text = R"(graph {
    input %x: f32[2, 96, 7, 7]
    param %u: f32[240, 96, 1, 1] = p0
    param %v: f32[240, 1, 5, 5] = p1
    param %s: f32[64, 240, 1, 1] = p2
    param %e: f32[240, 64, 1, 1] = p3
    param %g: f32[240, 1, 1] = p4
    param %w: f32[96, 240, 1, 1] = p5
    %c: ? = Conv(%x, %u)
    %a: ? = HardSwish(%c)
    %d: ? = Conv(%a, %v) {group = 240, pads = [2, 2, 2, 2]}
    %p: ? = GlobalAveragePool(%d)
    %q: ? = reprise.Conv(%p, %s) {activation = "relu"}
    %r: ? = reprise.Conv(%q, %e) {activation = "sigmoid"}
    %m: ? = Mul(%d, %r)
    %n: ? = Mul(%m, %g)
    %y: ? = Conv(%n, %w)
    output %y
  })";
  ExpectSameAnswers(*ChooseLayouts(), text, kNear);
  EXPECT_EQ(CountTransposes(text), 2);
  EXPECT_NE(OpsInLayouts(text).find("ReduceMean"), std::string::npos) << OpsInLayouts(text);
}

TEST(ChooseLayoutsTest, ChannelsAreDividedAndJoinedWhereTheyLie) {
  const std::string text = R"(graph {
    input %x: f32[1, 128, 7, 7]
    const %parts: i64[2] = {64, 64}
    param %u: f32[64, 64, 1, 1] = p0
    param %v: f32[64, 1, 3, 3] = p1
    param %w: f32[256, 128, 1, 1] = p2
    %l: ?, %r: ? = Split(%x, %parts) {axis = 1}
    %c: ? = Conv(%r, %u)
    %d: ? = Conv(%c, %v) {group = 64, pads = [1, 1, 1, 1]}
    %j: ? = Concat(%l, %d) {axis = 1}
    %y: ? = Conv(%j, %w)
    output %y
  })";
  ExpectSameAnswers(*ChooseLayouts(), text, kNear);
}

// Weights are transposed once, not in every replay; a value that is also an output stays one.
TEST(ChooseLayoutsTest, ParametersAreTurnedWhenTheyAreMade) {
  const std::string text = R"(graph {
    input %x: f32[1, 64, 14, 14]
    param %u: f32[96, 64, 1, 1] = p0
    param %v: f32[96, 1, 5, 5] = p1
    param %e: f32[1, 32, 14, 14] = p2
    param %w: f32[64, 128, 1, 1] = p3
    %a: ? = Conv(%x, %u)
    %c: ? = Conv(%a, %v) {group = 96, pads = [2, 2, 2, 2]}
    %j: ? = Concat(%c, %e) {axis = 1}
    %y: ? = Conv(%j, %w)
    output %y
    output %c
  })";
  ExpectSameAnswers(*ChooseLayouts(), text, kNear);
  EXPECT_EQ(CountTransposes(text), 3) << OpsInLayouts(text);
}

// Windows along one dim after the other.
TEST(ChooseLayoutsTest, PoolsGoAlong) {
  for (const char* pool :
       {"MaxPool(%c) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}",
        "MaxPool(%c) {kernel_shape = [3, 2], strides = [2, 1], dilations = [2, 1], ceil_mode = 1}",
        "AveragePool(%c) {kernel_shape = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1]}",
        "AveragePool(%c) {kernel_shape = [2, 3], strides = [2, 2], pads = [0, 1, 1, 1], "
        "count_include_pad = 1}",
        "AveragePool(%c) {kernel_shape = [3, 3], strides = [2, 2], auto_pad = \"SAME_UPPER\"}",
        "AveragePool(%c) {kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1}"}) {
    const std::string text = absl::StrCat(R"(graph {
    input %x: f32[2, 64, 14, 13]
    param %u: f32[96, 64, 1, 1] = p0
    param %v: f32[96, 1, 3, 3] = p1
    param %w: f32[64, 96, 1, 1] = p2
    %a: ? = Conv(%x, %u)
    %c: ? = Conv(%a, %v) {group = 96, pads = [1, 1, 1, 1]}
    %p: ? = )",
                                          pool, R"(
    %y: ? = Conv(%p, %w)
    output %y
  })");
    ExpectSameAnswers(*ChooseLayouts(), text, kNear);
    EXPECT_EQ(CountTransposes(text), 2) << pool;
  }
}

TEST(ChooseLayoutsTest, TransposedConvolutionsGoAlong) {
  const std::string text = R"(graph {
    input %x: f32[1, 64, 8, 8]
    param %u: f32[64, 48, 4, 4] = p0
    param %v: f32[48, 64, 2, 2] = p1
    param %w: f32[32, 64, 1, 1] = p2
    %a: ? = ConvTranspose(%x, %u) {strides = [2, 2], pads = [1, 1, 1, 1]}
    %b: ? = reprise.ConvTranspose(%a, %v) {strides = [2, 2], activation = "relu"}
    %y: ? = Conv(%b, %w)
    output %y
  })";
  ExpectSameAnswers(*ChooseLayouts(), text, kNear);
  EXPECT_EQ(OpsInLayouts(text),
            "Transpose reprise.ConvTranspose reprise.ConvTranspose reprise.Linear Transpose");
}

// Tokens that become planes for one convolution, as in mixed transformers: nothing is turned.
TEST(ChooseLayoutsTest, TokensAreNotTurnedForAConvolution) {
  const std::string text = R"(graph {
    input %x: f32[1, 784, 256]
    const %planes: i64[4] = {1, 256, 28, 28}
    const %tokens: i64[3] = {1, 256, 784}
    param %v: f32[256, 1, 3, 3] = p0
    %t: ? = Transpose(%x) {perm = [0, 2, 1]}
    %p: ? = Reshape(%t, %planes)
    %d: ? = Conv(%p, %v) {group = 256, pads = [1, 1, 1, 1]}
    %f: ? = Reshape(%d, %tokens)
    %y: ? = Transpose(%f) {perm = [0, 2, 1]}
    output %y
  })";
  ExpectSameAnswers(*ChooseLayouts(), text, kNear);
  EXPECT_EQ(OpsInLayouts(text), "Reshape reprise.Conv Reshape");
}

TEST(ChooseLayoutsTest, PlanesAlongOneDim) {
  const std::string text = R"(graph {
    input %x: f32[2, 100, 144]
    param %u: f32[288, 144, 1] = p0
    param %v: f32[144, 1, 15] = p1
    const %parts: i64[2] = {144, 144}
    %t: ? = Transpose(%x) {perm = [0, 2, 1]}
    %c: ? = Conv(%t, %u)
    %l: ?, %r: ? = Split(%c, %parts) {axis = 1}
    %s: ? = Sigmoid(%r)
    %m: ? = Mul(%l, %s)
    %d: ? = reprise.Conv(%m, %v) {group = 144, pads = [7, 7], activation = "silu"}
    %y: ? = Transpose(%d) {perm = [0, 2, 1]}
    output %y
  })";
  ExpectSameAnswers(*ChooseLayouts(), text, kNear);
  EXPECT_EQ(OpsInLayouts(text).find("Transpose"), std::string::npos) << OpsInLayouts(text);
}

TEST(ChooseLayoutsTest, LargePlanesOfFewChannelsStay) {
  const std::string text = R"(graph {
    input %x: f32[1, 8, 112, 112]
    param %v: f32[8, 1, 3, 3] = p0
    param %w: f32[8, 8, 1, 1] = p1
    %c: ? = Conv(%x, %v) {group = 8, pads = [1, 1, 1, 1]}
    %y: ? = Conv(%c, %w)
    output %y
  })";
  EXPECT_EQ(OpsInLayouts(text), "Conv Conv");
}

// Buckets of all batches share packed weights.
TEST(ChooseLayoutsTest, TheBatchDoesNotDecide) {
  const auto ops = [](int64_t batch) {
    return OpsInLayouts(absl::StrCat("graph {\n    input %x: f32[", batch, R"(, 40, 13, 13]
    param %u: f32[96, 40, 1, 1] = p0
    param %v: f32[96, 1, 3, 3] = p1
    param %w: f32[64, 96, 3, 3] = p2
    %a: ? = Conv(%x, %u)
    %c: ? = Conv(%a, %v) {group = 96, pads = [1, 1, 1, 1]}
    %d: ? = Relu(%c)
    %y: ? = Conv(%d, %w) {strides = [2, 2]}
    output %y
  })"));
  };
  for (const int64_t batch : {2, 3, 8, 32, 512}) EXPECT_EQ(ops(batch), ops(1)) << batch;
}

// Windows of 3 x 3 are made by tiles where channels lie first, and models without convolutions
// have nothing to choose.
TEST(ChooseLayoutsTest, OthersAreLeftAlone) {
  EXPECT_EQ(OpsInLayouts(R"(graph {
    input %x: f32[1, 64, 28, 28]
    param %v: f32[64, 64, 3, 3] = p0
    %c: ? = Conv(%x, %v) {pads = [1, 1, 1, 1]}
    %y: ? = Relu(%c)
    output %y
  })"),
            "Conv Relu");
  EXPECT_EQ(OpsInLayouts(R"(graph {
    input %x: f32[2, 16, 64]
    %t: ? = Transpose(%x) {perm = [0, 2, 1]}
    %y: ? = Relu(%t)
    output %y
  })"),
            "Transpose Relu");
}

}  // namespace
}  // namespace reprise
