#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// The error of answers before the pass, which rounds every value to half, relative to the largest
// one.
constexpr SameAnswersOptions kFloat16Rounding = {.tolerance = 2e-3, .relative = 4e-3};

void ExpectWidened(absl::string_view text, absl::string_view expected,
                   const SameAnswersOptions& options = kFloat16Rounding) {
  ExpectRewrite(*WidenHalf(), text, expected, options);
  // The result of the pass has nothing left to widen.
  ExpectUnchanged(*WidenHalf(), RunPass(*WidenHalf(), text));
}

TEST(WidenHalfTest, ArithmeticIsDoneInFloat32) {
  ExpectWidened(R"(graph {
    input %x: f16[4, 8]
    param %w: f16[8, 40] = p0
    const %b: f16[] = {0.5}
    %a: ? = MatMul(%x, %w)
    %y: ? = Add(%a, %b)
    output %y
  })",
                R"(graph {
    input %x: f16[4, 8]
    param %w: f32[8, 40] = Cast{to = 1}(p0)
    const %b: f32[] = {0.5}
    %wide: ? = Cast(%x) {to = 1}
    %a: ? = MatMul(%wide, %w)
    %s: ? = Add(%a, %b)
    %y: ? = Cast(%s) {to = 10}
    output %y
  })");
}

TEST(WidenHalfTest, CastsBetweenTheWidthsGo) {
  ExpectWidened(R"(graph {
    input %x: f32[4, 8]
    %h: ? = Cast(%x) {to = 16}
    %a: ? = Exp(%h)
    %f: ? = Cast(%a) {to = 1}
    %b: ? = Tanh(%f)
    %g: ? = Cast(%b) {to = 16}
    %c: ? = Neg(%g)
    %y: ? = Cast(%c) {to = 1}
    output %y
  })",
                R"(graph {
    input %x: f32[4, 8]
    %a: ? = Exp(%x)
    %b: ? = Tanh(%a)
    %y: ? = Neg(%b)
    output %y
  })",
                {.tolerance = 0.05});
}

TEST(WidenHalfTest, WeightsInHalfThatAreCastBeforeUseAreWidenedAtPreparation) {
  ExpectWidened(R"(graph {
    input %x: f32[4, 8]
    param %w: f16[8, 40] = p0
    %f: ? = Cast(%w) {to = 1}
    %y: ? = MatMul(%x, %f)
    output %y
  })",
                R"(graph {
    input %x: f32[4, 8]
    param %f: f32[8, 40] = Cast{to = 1}(p0)
    %y: ? = MatMul(%x, %f)
    output %y
  })");
}

TEST(WidenHalfTest, APairOfCastsRounds) {
  ExpectUnchanged(*WidenHalf(), R"(graph {
    input %x: f32[4, 8]
    %h: ? = Cast(%x) {to = 10}
    %f: ? = Cast(%h) {to = 1}
    %y: ? = Neg(%f)
    output %y
  })");
}

TEST(WidenHalfTest, WhatIsRoundedAndMovedStaysRoundedWhereItIsCastOrCompared) {
  ExpectWidened(R"(graph {
    input %x: f32[4, 8]
    const %c: f16[] = {0.099975586}
    %h: ? = Cast(%x) {to = 10}
    %t: ? = Transpose(%h) {perm = [1, 0]}
    %i: ? = Cast(%t) {to = 7}
    %less: ? = Less(%h, %c)
    %y: ? = Exp(%h)
    %f: ? = Cast(%y) {to = 1}
    output %i
    output %less
    output %f
  })",
                R"(graph {
    input %x: f32[4, 8]
    const %c: f32[] = {0.0999755859375}
    %h: ? = Cast(%x) {to = 10}
    %y: ? = Exp(%x)
    %r: ? = Cast(%h) {to = 1}
    %t: ? = Transpose(%r) {perm = [1, 0]}
    %i: ? = Cast(%t) {to = 7}
    %less: ? = Less(%r, %c)
    output %i
    output %less
    output %y
  })");
}

TEST(WidenHalfTest, AConstantIsWhatTheCastMakesOfIt) {
  ExpectWidened(R"(graph {
    input %x: f16[2, 3]
    const %c: f32[] = {-1e30}
    const %d: f32[] = {0.1}
    %i: ? = Cast(%c) {to = 10}
    %t: ? = Cast(%d) {to = 10}
    %a: ? = Mul(%x, %t)
    %y: ? = Max(%a, %i)
    output %y
  })",
                R"(graph {
    input %x: f16[2, 3]
    const %t: f32[] = {0.0999755859375}
    const %i: f32[] = {-inf}
    %wide: ? = Cast(%x) {to = 1}
    %a: ? = Mul(%wide, %t)
    %b: ? = Max(%a, %i)
    %y: ? = Cast(%b) {to = 10}
    output %y
  })");
}

TEST(WidenHalfTest, InputsAndOutputsKeepTheirDtypes) {
  ExpectWidened(R"(graph {
    input %x: f16[4]
    input %z: bf16[4]
    param %p: f16[300] = p0
    %a: ? = Abs(%x)
    %b: ? = Sqrt(%a)
    output %x
    output %p
    output %a
    output %b
    output %a
    output %z
  })",
                R"(graph {
    input %x: f16[4]
    input %z: bf16[4]
    param %p: f16[300] = p0
    %wide: ? = Cast(%x) {to = 1}
    %a: ? = Abs(%wide)
    %b: ? = Sqrt(%a)
    %c: ? = Cast(%a) {to = 10}
    %d: ? = Cast(%b) {to = 10}
    output %x
    output %p
    output %c
    output %d
    output %c
    output %z
  })");
}

TEST(WidenHalfTest, DtypesThatNodesNameAreWidened) {
  ExpectWidened(R"(graph {
    input %n: i64[2, 3]
    const %size: i64[2] = {2, 3}
    %ones: ? = ConstantOfShape(%size) {value = f16[1]{0.5}}
    %eye: ? = EyeLike(%n) {dtype = 10}
    %half: ? = Cast(%n) {to = 10}
    %a: ? = Add(%ones, %eye)
    %b: ? = Mul(%a, %half)
    output %b
  })",
                R"(graph {
    input %n: i64[2, 3]
    const %size: i64[2] = {2, 3}
    %ones: ? = ConstantOfShape(%size) {value = f32[1]{0.5}}
    %eye: ? = EyeLike(%n) {dtype = 1}
    %a: ? = Add(%ones, %eye)
    %half: ? = Cast(%n) {to = 1}
    %b: ? = Mul(%a, %half)
    %c: ? = Cast(%b) {to = 10}
    output %c
  })");
}

TEST(WidenHalfTest, CastLikeAHalfIsACast) {
  ExpectWidened(R"(graph {
    input %x: f32[4]
    input %h: f16[4]
    %a: ? = CastLike(%x, %h)
    %b: ? = Add(%a, %h)
    %y: ? = CastLike(%b, %x)
    output %y
  })",
                R"(graph {
    input %x: f32[4]
    input %h: f16[4]
    %wide: ? = Cast(%h) {to = 1}
    %y: ? = Add(%x, %wide)
    output %y
  })");
}

TEST(WidenHalfTest, QuantisedValuesKeepTheirDtype) {
  ExpectWidened(R"(graph {
    input %x: f16[4, 8]
    const %s: f16[] = {0.125}
    const %z: u8[] = {7}
    %q: ? = QuantizeLinear(%x, %s, %z)
    %y: ? = DequantizeLinear(%q, %s, %z)
    output %q
    output %y
  })",
                R"(graph {
    input %x: f16[4, 8]
    const %z: u8[] = {7}
    const %s: f32[] = {0.125}
    %wide: ? = Cast(%x) {to = 1}
    %q: ? = QuantizeLinear(%wide, %s, %z)
    %d: ? = DequantizeLinear(%q, %s, %z)
    %y: ? = Cast(%d) {to = 10}
    output %q
    output %y
  })");
}

// A bound that is left out is the largest number of the half.
TEST(WidenHalfTest, ClipsAreBoundedByTheirHalf) {
  ExpectWidened(R"(graph {
    input %x: f16[4, 8]
    const %low: f16[] = {-1}
    %y: ? = Clip(%x, %low)
    output %y
  })",
                R"(graph {
    input %x: f16[4, 8]
    const %bound: f32[] = {65504}
    const %low: f32[] = {-1}
    %wide: ? = Cast(%x) {to = 1}
    %c: ? = Clip(%wide, %low, %bound)
    %y: ? = Cast(%c) {to = 10}
    output %y
  })");
}

TEST(WidenHalfTest, FloatsAndIntegersAreLeftAlone) {
  ExpectUnchanged(*WidenHalf(), R"(graph {
    input %x: f32[4, 8]
    input %n: i64[4]
    param %w: f32[8, 40] = p0
    %a: ? = MatMul(%x, %w)
    %d: ? = Cast(%a) {to = 11}
    %b: ? = Cast(%n) {to = 1}
    output %d
    output %b
  })");
}

TEST(WidenHalfTest, BothBranchesAreWidened) {
  auto graph = Parse(R"(graph {
    input %c: bool[]
    input %x: f16[n]
    %a: ? = Neg(%x)
    %b: ? = Exp(%x)
    %y: ? = If(%c, %a, %b)
    output %y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(graph->Compact());
  ASSERT_TRUE(WidenHalf()->Run(*graph).ok());
  ASSERT_TRUE(graph->Compact());
  EXPECT_EQ(OpsOf(*graph), "Cast Neg Exp If Cast");
}

}  // namespace
}  // namespace reprise
