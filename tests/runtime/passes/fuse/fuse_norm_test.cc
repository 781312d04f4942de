#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

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
