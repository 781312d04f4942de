#include "runtime/graph/verifier.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

Graph Small() {
  return MustParse(R"(graph {
    input %x: f32[4]
    const %c: f32[] = {1}
    %y: f32[4] = Add(%x, %c)
    %z: f32[4] = Relu(%y)
    output %z
  })");
}

void ExpectBroken(const Graph& graph, absl::string_view message, bool specialized = false) {
  const absl::Status status = Verify(graph, specialized);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(message)));
}

TEST(VerifierTest, AGoodGraphPasses) {
  EXPECT_TRUE(Verify(Small(), false).ok());
  EXPECT_TRUE(Verify(Small(), true).ok());
}

TEST(VerifierTest, AValueWithoutShapeFailsOnlyWhenSpecialized) {
  const Graph graph = MustParse("graph {\n input %x: f32[n]\n %y: ? = Relu(%x)\n output %y\n}");
  EXPECT_TRUE(Verify(graph, false).ok());
  ExpectBroken(graph, "'x' has no constant shape", true);
}

TEST(VerifierTest, UseBeforeDefinitionIsNamed) {
  const Graph graph = MustParse(R"(graph {
    input %x: f32[4]
    %z: f32[4] = Relu(%y)
    %y: f32[4] = Relu(%x)
    output %z
  })");
  ExpectBroken(graph, "reads 'y', which node 1 (Relu) defines later");
}

TEST(VerifierTest, ACycleIsBrokenAndCompactSaysSo) {
  Graph graph = MustParse(R"(graph {
    %z: f32[4] = Relu(%y)
    %y: f32[4] = Relu(%z)
    output %z
  })");
  ExpectBroken(graph, "defines later");
  EXPECT_FALSE(graph.Compact());
}

TEST(VerifierTest, AForgottenUseIsNamed) {
  Graph graph = Small();
  graph.value(graph.FindValue("y")).users.clear();
  ExpectBroken(graph, "'y' does not list node 1 (Relu) as a user");
}

TEST(VerifierTest, AStaleUseIsNamed) {
  Graph graph = Small();
  graph.value(graph.FindValue("z")).users.push_back(0);
  ExpectBroken(graph, "'z' lists 1 uses, but has 0");
}

TEST(VerifierTest, AnUndefinedOutputIsNamed) {
  Graph graph = Small();
  graph.AddOutput(77);
  ExpectBroken(graph, "output value 77 is not defined");
}

TEST(VerifierTest, AnUndefinedOperandIsNamed) {
  Graph graph = Small();
  graph.node(1).inputs[0] = 77;
  ExpectBroken(graph, "node 1 (Relu) reads value 77 as input 0");
}

TEST(VerifierTest, DuplicateNamesAreNamed) {
  Graph graph = Small();
  graph.value(graph.FindValue("z")).name = "y";
  ExpectBroken(graph, "two values are named 'y'");
}

TEST(VerifierTest, AConstantWithAnotherTypeThanItsTensorIsNamed) {
  Graph graph = Small();
  graph.value(graph.FindValue("c")).dtype = DType::kInt64;
  ExpectBroken(graph, "constant 'c' has another type");
}

}  // namespace
}  // namespace reprise
