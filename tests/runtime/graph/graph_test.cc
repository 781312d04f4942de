#include "runtime/graph/graph.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

TEST(GraphTest, CompactDropsDeadNodesAndSortsTheRest) {
  Graph graph = MustParse(R"(graph {
    input %x: f32[4]
    input %unused: f32[4]
    const %c: f32[] = {1}
    const %dead_c: f32[] = {2}
    %z: f32[4] = Relu(%y)
    %dead: f32[4] = Add(%y, %dead_c)
    %dead2: f32[4] = Relu(%dead)
    %y: f32[4] = Add(%x, %c)
    output %z
  })");
  ASSERT_TRUE(graph.Compact());
  EXPECT_EQ(Print(graph), R"(graph {
  input %x: f32[4]
  input %unused: f32[4]
  const %c: f32[] = {1}
  %y: f32[4] = Add(%x, %c)
  %z: f32[4] = Relu(%y)
  output %z
}
)");
  EXPECT_TRUE(Verify(graph, true).ok()) << Verify(graph, true).ToString();
}

TEST(GraphTest, AResultThatBecomesAConstantLosesItsProducer) {
  Graph graph = MustParse(R"(graph {
    input %x: f32[2]
    %a: f32[2] = Relu(%x)
    %b: f32[2] = Relu(%a)
    output %b
  })");
  graph.ReplaceWithConstant(graph.FindValue("a"),
                            Tensor::FromVector<float>(DType::kFloat32, {2}, {1, 2}));
  ASSERT_TRUE(graph.Compact());
  EXPECT_EQ(graph.live_nodes(), 1u);
  EXPECT_TRUE(Verify(graph, true).ok()) << Verify(graph, true).ToString();
}

TEST(GraphTest, OneUsedResultKeepsAProducerOfTwo) {
  Graph graph = MustParse(R"(graph {
    input %x: f32[2]
    %a: f32[2], %b: f32[2] = Split(%x)
    %c: f32[2] = Add(%a, %b)
    output %c
  })");
  graph.ReplaceWithConstant(graph.FindValue("a"),
                            Tensor::FromVector<float>(DType::kFloat32, {2}, {1, 2}));
  EXPECT_EQ(graph.live_nodes(), 2u);
  graph.ReplaceWithConstant(graph.FindValue("b"),
                            Tensor::FromVector<float>(DType::kFloat32, {2}, {1, 2}));
  EXPECT_EQ(graph.live_nodes(), 1u);
  ASSERT_TRUE(graph.Compact());
  EXPECT_TRUE(Verify(graph, true).ok()) << Verify(graph, true).ToString();
}

TEST(GraphTest, ReplaceAllUsesMovesOutputsToo) {
  Graph graph = MustParse(R"(graph {
    input %x: f32[2]
    %a: f32[2] = Identity(%x)
    %b: f32[2] = Add(%a, %a)
    output %a
    output %b
  })");
  const ValueId x = graph.FindValue("x");
  graph.ReplaceAllUses(graph.FindValue("a"), x);
  ASSERT_TRUE(graph.Compact());
  EXPECT_EQ(graph.outputs()[0], graph.FindValue("x"));
  EXPECT_EQ(graph.live_nodes(), 1u);
  EXPECT_TRUE(Verify(graph, true).ok()) << Verify(graph, true).ToString();
}

TEST(GraphTest, RandomChangesKeepTheInvariants) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Graph graph;
    std::vector<ValueId> values = {graph.AddInput("x", DType::kFloat32, {{.size = 2}}),
                                   graph.AddConstant("c", Tensor::FloatScalar(1))};
    for (int i = 0; i < 30; ++i) {
      const auto pick = [&] { return values[random() % values.size()]; };
      const NodeId node = graph.AddNode("Op", {pick(), kNone, pick()}, {}, 1 + random() % 2);
      for (ValueId output : graph.node(node).outputs) {
        graph.value(output).dtype = DType::kFloat32;
        graph.value(output).shape = Shape{2};
        values.push_back(output);
      }
    }
    for (int i = 0; i < 3; ++i) graph.AddOutput(values[random() % values.size()]);
    for (int i = 0; i < 8; ++i) {
      // `to` is defined before `from`, so that no cycle comes about.
      const ValueId from = values[2 + random() % (values.size() - 2)];
      const ValueId to = values[random() % 2];
      if (graph.value(from).kind != Value::Kind::kResult) continue;
      if (random() % 2) {
        graph.ReplaceAllUses(from, to);
      } else {
        graph.ReplaceWithConstant(from, Tensor::FromVector<float>(DType::kFloat32, {2}, {1, 2}));
      }
    }
    ASSERT_TRUE(graph.Compact());
    const absl::Status status = Verify(graph, true);
    ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << Print(graph);
  }
}

}  // namespace
}  // namespace reprise
