// Rules of precision: how they are read, which one counts, and which marks a graph keeps.
#include "runtime/passes/kit/precision_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"

namespace reprise {
namespace {

using testing::HasSubstr;

Node NodeOf(const std::string& op, const std::string& name) { return {.op = op, .name = name}; }

PrecisionRules Parsed(absl::string_view text) {
  auto rules = PrecisionRules::Parse(text);
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? *rules : PrecisionRules();
}

TEST(PrecisionRulesTest, PatternsCountMoreThanTypesAndLaterOnesMoreThanEarlier) {
  const PrecisionRules rules =
      Parsed("bf16: MatMul, Gemm; exact: Attention,/encoder/layer.11/*; bf16: */layer.11/last*;");
  EXPECT_EQ(rules.Of(NodeOf("MatMul", "/a")), Precision::kBf16);
  EXPECT_EQ(rules.Of(NodeOf("com.microsoft.Attention", "x")), Precision::kExact);
  EXPECT_EQ(rules.Of(NodeOf("reprise.Attention", "")), Precision::kExact);
  EXPECT_EQ(rules.Of(NodeOf("MatMul", "/encoder/layer.11/first")), Precision::kExact);
  EXPECT_EQ(rules.Of(NodeOf("MatMul", "/encoder/layer.11/last.1")), Precision::kBf16);
  EXPECT_FALSE(rules.Of(NodeOf("Conv", "/a")).has_value());
  EXPECT_EQ(Parsed(rules.ToString()).ToString(), rules.ToString());
}

TEST(PrecisionRulesTest, StarsStandForAnyText) {
  const PrecisionRules rules = Parsed("bf16: a*b*c/");
  for (const char* name : {"abc/", "aXbYc/", "abbcc/", "aabc/c/"}) {
    EXPECT_TRUE(rules.Of(NodeOf("X", name)).has_value()) << name;
  }
  for (const char* name : {"", "ab/", "abc", "xabc/", "acb/"}) {
    EXPECT_FALSE(rules.Of(NodeOf("X", name)).has_value()) << name;
  }
}

TEST(PrecisionRulesTest, FilesStandForTheirLines) {
  const auto read = [](const std::string& name) -> absl::StatusOr<std::string> {
    if (name != "list.txt") return absl::NotFoundError(name + " is not there");
    return std::string("# products\nMatMul  # all of them\n\n/head/*\n");
  };
  const auto rules = PrecisionRules::Parse("bf16: @list.txt", read);
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->ToString(), "bf16: MatMul; bf16: /head/*");
  EXPECT_THAT(PrecisionRules::Parse("bf16: @other.txt", read).status().message(),
              HasSubstr("other.txt is not there"));
  EXPECT_FALSE(PrecisionRules::Parse("bf16: @list.txt").ok());
}

TEST(PrecisionRulesTest, WrongOnesAreNamed) {
  for (const char* text :
       {"MatMul", "fp8: MatMul", "bf16 MatMul", "bf16:", "bf16: ,", ": MatMul"}) {
    const auto rules = PrecisionRules::Parse(text);
    EXPECT_TRUE(absl::IsInvalidArgument(rules.status())) << text;
    EXPECT_THAT(std::string(rules.status().message()), HasSubstr("'")) << text;
  }
  EXPECT_TRUE(PrecisionRules::Parse(" ; ").ok());
}

// x w, of which `name` is the product's name.
Graph Product(const std::string& name) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {{.size = 2}, {.size = 32}});
  const ValueId w = graph.AddParameter("w", ParameterExpr::Leaf(0, DType::kFloat32, {32, 32}));
  const NodeId product = graph.AddNode("MatMul", {x, w}, {}, 1, name);
  graph.AddOutput(graph.node(product).outputs[0]);
  return graph;
}

TEST(NodePrecisionsTest, DigestsAreEqualWhereTheRulesComeToTheSame) {
  const auto digest = [](const std::string& name, const char* rules) {
    Graph graph = Product(name);
    return NodePrecisions(graph, Parsed(rules), Precision::kExact).digest();
  };
  EXPECT_EQ(digest("/a/one", "bf16: /a/*"), digest("/a/other", "bf16: /a/*"));
  EXPECT_NE(digest("/a/one", "bf16: /a/*"), digest("/b/one", "bf16: /a/*"));
  EXPECT_NE(digest("/a/one", "bf16: /a/*"), digest("/a/one", "exact: /a/*"));
}

TEST(NodePrecisionsTest, NodesWithoutANameGetOneAndRoundAsTheRulesSay) {
  Graph graph = Product("");
  const NodePrecisions nodes(graph, Parsed("bf16: Gemm"), Precision::kExact);
  const NodeId product = graph.NodeIds()[0];
  EXPECT_FALSE(graph.node(product).name.empty());
  EXPECT_EQ(nodes.Of(graph.node(product)), Precision::kExact);
  const NodePrecisions others(graph, Parsed("int8: MatMul"), Precision::kExact);
  EXPECT_EQ(others.Of(graph.node(product)), Precision::kInt8);
}

TEST(NodePrecisionsTest, AChoiceCountsWhereNoRuleDoes) {
  Graph graph = Product("/a/one");
  const Node& product = graph.node(graph.NodeIds()[0]);
  const NodePrecisions free(graph, Parsed("bf16: /b/*"), Precision::kExact);
  EXPECT_FALSE(free.IsRuled(product));
  const NodePrecisions chosen =
      free.With({{"/a/one", Precision::kInt8}, {"/made", Precision::kBf16}});
  EXPECT_EQ(chosen.Of(product), Precision::kInt8);
  EXPECT_EQ(chosen.Of(NodeOf("reprise.Attention", "/made")), Precision::kBf16);
  EXPECT_EQ(chosen.Of(NodeOf("reprise.Attention", "/b/made")), Precision::kBf16);
  EXPECT_EQ(chosen.Of(NodeOf("reprise.Attention", "/other")), Precision::kExact);
  EXPECT_EQ(free.Of(product), Precision::kExact);
  EXPECT_NE(chosen.digest(), free.digest());
  EXPECT_EQ(free.With({}).digest(), free.digest());
  const NodePrecisions ruled(graph, Parsed("bf16: MatMul"), Precision::kExact);
  EXPECT_TRUE(ruled.IsRuled(product));
  EXPECT_EQ(ruled.With({{"/a/one", Precision::kInt8}}).Of(product), Precision::kBf16);
}

}  // namespace
}  // namespace reprise
