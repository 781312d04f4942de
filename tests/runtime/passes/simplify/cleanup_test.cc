#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(MergeCommonTest, EqualConstantsParametersAndNodesBecomeOne) {
  ExpectRewrite(*MergeCommon(), R"(graph {
    input %x: f32[2, 3]
    input %y: f32[2, 3]
    param %w: f32[3, 3] = p0
    const %one: f32[] = {1}
    const %uno: f32[] = {1}
    %a: ? = Add(%x, %one)
    %b: ? = Add(%uno, %x)
    %c: ? = Sub(%x, %y)
    %d: ? = Sub(%y, %x)
    %e: ? = MatMul(%a, %w)
    %f: ? = MatMul(%b, %w)
    %g: ? = Add(%e, %f)
    %h: ? = Mul(%c, %d)
    %i: ? = Add(%g, %h)
    output %i
  })",
                R"(graph {
    input %x: f32[2, 3]
    input %y: f32[2, 3]
    param %w: f32[3, 3] = p0
    const %one: f32[] = {1}
    %a: ? = Add(%x, %one)
    %c: ? = Sub(%x, %y)
    %d: ? = Sub(%y, %x)
    %e: ? = MatMul(%a, %w)
    %g: ? = Add(%e, %e)
    %h: ? = Mul(%c, %d)
    %i: ? = Add(%g, %h)
    output %i
  })");
}

TEST(MergeCommonTest, OtherAttributesConstantsOrTypesStay) {
  ExpectUnchanged(*MergeCommon(), R"(graph {
    input %x: f32[2, 3]
    const %one: i64[] = {1}
    const %uno: i64[1] = {1}
    const %zero: f32[] = {0}
    const %minus_zero: f32[] = {-0}
    %a: ? = Softmax(%x) {axis = 0}
    %b: ? = Softmax(%x) {axis = 1}
    %c: ? = ReduceSum(%x, %uno)
    %d: ? = Gather(%x, %one)
    %e: ? = Add(%x, %zero)
    %f: ? = Add(%x, %minus_zero)
    output %a
    output %b
    output %c
    output %d
    output %e
    output %f
  })");
}

TEST(EliminateDeadTest, WhatNoOutputNeedsGoes) {
  ExpectRewrite(*EliminateDead(), R"(graph {
    input %x: f32[2]
    input %unused: f32[2]
    %a: ? = Relu(%x)
    %b: ? = Neg(%a)
    output %a
  })",
                R"(graph {
    input %x: f32[2]
    input %unused: f32[2]
    %a: ? = Relu(%x)
    output %a
  })");
}

TEST(FinalizeOutputsTest, OutputsThatAreNoResultOfTheirOwnGetACopy) {
  ExpectRewrite(*FinalizeOutputs(), R"(graph {
    input %x: f32[2]
    param %w: f32[2] = p0
    const %c: f32[2] = {1, 2}
    const %shape: i64[2] = {2, 1}
    %a: ? = Relu(%x)
    %view: ? = Reshape(%x, %shape)
    %view_of_a: ? = Reshape(%a, %shape)
    output %x
    output %w
    output %c
    output %a
    output %a
    output %view
    output %view_of_a
  })",
                R"(graph {
    input %x: f32[2]
    param %w: f32[2] = p0
    const %c: f32[2] = {1, 2}
    const %shape: i64[2] = {2, 1}
    %a: ? = Relu(%x)
    %view: ? = Reshape(%x, %shape)
    %view_of_a: ? = Reshape(%a, %shape)
    %x2: ? = Identity(%x)
    %w2: ? = Identity(%w)
    %c2: ? = Identity(%c)
    %a2: ? = Identity(%a)
    %view2: ? = Identity(%view)
    %view_of_a2: ? = Identity(%view_of_a)
    output %x2
    output %w2
    output %c2
    output %a
    output %a2
    output %view2
    output %view_of_a2
  })");
}

TEST(FinalizeOutputsTest, AViewOfAResultMayBeAnOutput) {
  ExpectUnchanged(*FinalizeOutputs(), R"(graph {
    input %x: f32[2]
    const %shape: i64[2] = {2, 1}
    %a: ? = Relu(%x)
    %view: ? = Reshape(%a, %shape)
    output %view
  })");
}

TEST(PrepareParametersTest, WhatDependsOnParametersAloneBecomesAnExpression) {
  ExpectRewrite(*PrepareParameters(), R"(graph {
    input %x: f32[2, 16]
    param %q: i8[16, 32] = p0
    const %scale: f32[1] = {0.5}
    %f: ? = Cast(%q) {to = 1}
    %w: ? = Mul(%f, %scale)
    %y: ? = MatMul(%x, %w)
    output %y
  })",
                R"(graph {
    input %x: f32[2, 16]
    param %w: f32[16, 32] = Mul(Cast{to = 1}(p0), f32[1]{0.5})
    %y: ? = MatMul(%x, %w)
    output %y
  })",
                {.tolerance = 0});
}

TEST(PrepareParametersTest, ConstantsAloneAndDataAndOverridableParametersStay) {
  ExpectUnchanged(*PrepareParameters(), R"(graph {
    input %x: f32[2]
    param %w: f32[2] = p0 overridable
    const %c: f32[] = {0.5}
    %a: ? = Neg(%c)
    %b: ? = Add(%x, %w)
    %d: ? = Neg(%w)
    output %a
    output %b
    output %d
  })");
}

TEST(FoldConstantsTest, NodesOverConstantsAndShapesBecomeConstants) {
  ExpectRewrite(*FoldConstants(), R"(graph {
    input %x: f32[2, 3]
    const %one: i64[] = {1}
    const %minus: i64[1] = {-1}
    %shape: ? = Shape(%x)
    %width: ? = Gather(%shape, %one)
    const %axes: i64[1] = {0}
    %widths: ? = Unsqueeze(%width, %axes)
    %target: ? = Concat(%widths, %minus) {axis = 0}
    output %target
  })",
                R"(graph {
    input %x: f32[2, 3]
    const %target: i64[2] = {3, -1}
    output %target
  })");
}

// The first value is handed on through an Identity, the second changes.
TEST(LoopInvariantsTest, WhatALoopOnlyHandsOnIsTakenFromAroundIt) {
  auto parsed = Parse(R"(graph {
    input %w: f32[2, 2]
    input %x: f32[2, 2]
    const %trips: i64[] = {3}
    %i: ?, %go: ?, %w0: ?, %x0: ? = reprise.LoopStep() {loop = [0]}
    %product: ? = MatMul(%x0, %w0)
    %w1: ? = Identity(%w0)
    %w2: ?, %y: ? = Loop(%trips, _, %w, %x, %go, %w1, %product) {carried = [2], loop = [0]}
    output %y
    output %w2
  })");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  Graph& graph = *parsed;
  ASSERT_TRUE(*LoopInvariants()->Run(graph));
  const auto users_of = [&](absl::string_view name) {
    return graph.value(graph.FindValue(name)).users.size();
  };
  EXPECT_EQ(users_of("w0"), 0u);
  EXPECT_EQ(users_of("x0"), 1u);
  const Node* product = graph.ProducerIf(graph.FindValue("product"), "MatMul");
  EXPECT_EQ(product->inputs[1], graph.FindValue("w"));
  EXPECT_EQ(graph.outputs()[0], graph.FindValue("y"));
  EXPECT_EQ(graph.outputs()[1], graph.FindValue("w"));
  EXPECT_FALSE(*LoopInvariants()->Run(graph));
}

}  // namespace
}  // namespace reprise
