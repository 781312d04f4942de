#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(CanonicalizeTest, ContributedOpsBecomeKnownOnes) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 4]
    param %b: f32[4] = p0
    %y: ? = com.microsoft.BiasGelu(%x, %b)
    %z: ? = com.microsoft.FastGelu(%y)
    output %z
  })",
                  R"(graph {
    input %x: f32[2, 3, 4]
    param %b: f32[4] = p0
    %a: ? = Add(%x, %b)
    %y: ? = Gelu(%a) {approximate = "none"}
    %z: ? = Gelu(%y) {approximate = "tanh"}
    output %z
  })");
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 4]
    input %skip: f32[2, 3, 4]
    param %gamma: f32[4] = p0
    param %beta: f32[4] = p1
    param %bias: f32[4] = p2
    %y: ?, _, _, %s: ? = com.microsoft.SkipLayerNormalization(%x, %skip, %gamma, %beta, %bias) {epsilon = 1e-05}
    %z: ? = com.microsoft.SkipSimplifiedLayerNormalization(%y, %s, %gamma) {epsilon = 1e-05}
    output %z
  })",
                  R"(graph {
    input %x: f32[2, 3, 4]
    input %skip: f32[2, 3, 4]
    param %gamma: f32[4] = p0
    param %beta: f32[4] = p1
    param %bias: f32[4] = p2
    %a: ? = Add(%x, %skip)
    %s: ? = Add(%a, %bias)
    %y: ? = LayerNormalization(%s, %gamma, %beta) {axis = -1, epsilon = 1e-05}
    %t: ? = Add(%y, %s)
    %z: ? = RMSNormalization(%t, %gamma) {axis = -1, epsilon = 1e-05}
    output %z
  })");
}

TEST(CanonicalizeTest, ASymbolicGraphOfKnownInputsIsLeftToItsCapture) {
  auto graph = Parse(R"(graph {
    input %x: f32[2, 3]
    const %shape: i64[3] = {4, 2, 3}
    const %axes: i64[1] = {0}
    const %indices: i64[2, 1] = {0, 1}
    const %flat: i64[1] = {-1}
    %a: ? = Expand(%x, %shape)
    %b: ? = ReduceSum(%a, %axes)
    %c: ? = GatherND(%x, %indices)
    %d: ? = Transpose(%x)
    %e: ? = Reshape(%x, %flat)
    %f: ? = Softmax(%e)
    %g: ? = Squeeze(%x)
    %h: ? = Add(%a, %x)
    %i: ? = Identity(%h)
    output %b
    output %c
    output %d
    output %f
    output %g
    output %i
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  ASSERT_TRUE(RunLoadPasses(*graph).ok());
  EXPECT_EQ(OpsOf(*graph), "Expand ReduceSum GatherND Transpose Reshape Softmax Squeeze Add");
}

}  // namespace
}  // namespace reprise
