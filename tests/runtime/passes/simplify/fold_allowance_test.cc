// One walk over a graph folds a bounded number of bytes and steps: see FoldAllowance.
#include <string>

#include "gtest/gtest.h"
#include "runtime/base/load_budget.h"
#include "runtime/base/memory_net.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/kit/fold.h"
#include "runtime/passes/kit/load_passes.h"
#include "runtime/passes/simplify/fold_constants.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

Graph Folded(const std::string& text) {
  absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(FoldConstantsWithin(nullptr)->Run(*graph).ok());
  return *std::move(graph);
}

bool IsFolded(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindValue(name);
  return id != kNone && graph.value(id).kind == Value::Kind::kConstant;
}

TEST(FoldAllowanceTest, ConstantsOfOneWalkAreBoundedTogether) {
  // Each takes 64 MB; three of them are all.
  std::string text = "graph {\n  const %zero: f32[1] = {0}\n";
  text += "  const %large: i64[1] = {16777216}\n  const %small: i64[1] = {8}\n";
  for (const char* name : {"a", "b", "c", "d"}) {
    text += std::string("  %") + name + ": ? = Expand(%zero, %large)\n  output %" + name + "\n";
  }
  text += "  %e: ? = Expand(%zero, %small)\n  output %e\n}";
  const Graph graph = Folded(text);
  EXPECT_TRUE(IsFolded(graph, "a"));
  EXPECT_TRUE(IsFolded(graph, "c"));
  EXPECT_FALSE(IsFolded(graph, "d"));
  EXPECT_TRUE(IsFolded(graph, "e"));
}

TEST(FoldAllowanceTest, LongProductsAreLeftToRequests) {
  const Graph graph = Folded(R"(graph {
    const %zero: f32[1] = {0}
    const %large: i64[2] = {2048, 2048}
    const %few: i64[2] = {8, 8}
    %a: ? = Expand(%zero, %large)
    %b: ? = MatMul(%a, %a)
    %c: ? = Expand(%zero, %few)
    %d: ? = MatMul(%c, %c)
    output %b
    output %d
  })");
  EXPECT_TRUE(IsFolded(graph, "a"));
  EXPECT_FALSE(IsFolded(graph, "b"));
  EXPECT_TRUE(IsFolded(graph, "d"));
}

// The allocator of a sanitizer ends the process.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(FoldAllowanceTest, TheLackOfMemoryIsCountedAndALimitIsNot) {
  absl::StatusOr<Graph> graph = Parse(R"(graph {
    const %zero: f32[1] = {0}
    const %large: i64[1] = {70368744177664}
    %a: ? = Expand(%zero, %large)
    output %a
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const NodeId node = graph->value(graph->FindValue("a")).producer;
  const int64_t before = times_without_memory;
  EXPECT_FALSE(*FoldNode(*graph, node, 1 << 20));
  EXPECT_EQ(times_without_memory, before);
  EXPECT_FALSE(*FoldNode(*graph, node, int64_t{1} << 60));
  EXPECT_EQ(times_without_memory, before + 1);
}
#endif

TEST(FoldAllowanceTest, PassesEndWithTheTimeOfTheLoad) {
  absl::StatusOr<Graph> graph = Parse(R"(graph {
    const %one: f32[] = {1}
    %a: ? = Add(%one, %one)
    output %a
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const LoadBudget over(LoadBudget::Limits{.nodes = 1, .bytes = 1, .cpu_ns = -1});
  const absl::Status status = RunLoadPassesWithin(*graph, over);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("ms of a core"), std::string::npos) << status;
}

}  // namespace
}  // namespace reprise
