#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/movement/ranks_op.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/paged/paged_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"
#include "tests/testing/interpreter.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph OfRank(absl::string_view text, int rank, int ranks) {
  Graph graph = ParseSpecialized(text);
  const auto changed = ShardProductsAmong({.rank = rank, .ranks = ranks})->Run(graph);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(graph.Compact());
  const absl::Status status = Verify(graph, true);
  EXPECT_TRUE(status.ok()) << status << "\n" << Print(graph);
  return graph;
}

// The parts of ranks, which the reference kernels leave apart, add up to the answer of all.
void ExpectParts(absl::string_view text, int ranks) {
  const Graph whole = ParseSpecialized(text);
  std::mt19937 random(7);
  const std::vector<Tensor> parameters = RandomParameters(whole, 2, random);
  std::map<std::string, Tensor> inputs;
  for (const ValueId id : whole.inputs()) {
    const Value& value = whole.value(id);
    inputs[value.name] = RandomTensor(value.dtype, *value.shape, 2, random);
  }
  const auto expected = Interpret(whole, inputs, parameters);
  ASSERT_TRUE(expected.ok()) << expected.status();
  std::vector<double> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    const Graph graph = OfRank(text, rank, ranks);
    const auto part = Interpret(graph, inputs, parameters);
    ASSERT_TRUE(part.ok()) << part.status() << "\n" << Print(graph);
    const std::vector<double> numbers = (*part)[0].ToDoubles();
    sums.resize(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) sums[i] += numbers[i];
  }
  const std::vector<double> wanted = (*expected)[0].ToDoubles();
  ASSERT_EQ(sums.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_NEAR(sums[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << i;
  }
}

// Returns the shapes of the weights of all products.
std::vector<Shape> WeightsOf(const Graph& graph) {
  std::vector<Shape> shapes;
  for (const NodeId id : graph.NodeIds()) {
    if (graph.node(id).op == LinearOp::kName) {
      shapes.push_back(*ShapeOf(graph, graph.node(id).inputs[1]));
    }
  }
  return shapes;
}

constexpr char kGated[] = R"(graph {
  input %x: f32[3, 1, 40]
  param %wg: f32[40, 96] = p0
  param %bg: f32[96] = p1
  param %wu: f32[40, 96] = Transpose{perm = [1, 0]}(f32[96, 40] p2)
  param %wd: f32[96, 40] = p3
  %g: ? = reprise.Linear(%x, %wg, %bg) {activation = "silu"}
  %u: ? = reprise.Linear(%x, %wu)
  %m: ? = Mul(%g, %u)
  %y: ? = reprise.Linear(%m, %wd)
  output %y
})";

TEST(ShardProductsTest, PartsOfAGatedLayerAddUpToTheWhole) {
  for (const int ranks : {2, 3}) ExpectParts(kGated, ranks);
}

TEST(ShardProductsTest, ColumnsAreDividedThenRows) {
  // Three groups of 32: the first rank has two of them.
  EXPECT_THAT(WeightsOf(OfRank(kGated, 0, 2)),
              ElementsAre(Shape{40, 64}, Shape{40, 64}, Shape{64, 40}));
  const Graph second = OfRank(kGated, 1, 2);
  EXPECT_THAT(WeightsOf(second), ElementsAre(Shape{40, 32}, Shape{40, 32}, Shape{32, 40}));
  EXPECT_EQ(CountOps(second, AllReduceOp::kName), 1);
}

TEST(ShardProductsTest, TheLastShareHasBiasAndResidual) {
  constexpr char kText[] = R"(graph {
    input %x: f32[3, 64]
    param %wu: f32[64, 64] = p0
    param %wd: f32[64, 64] = p1
    param %bd: f32[64] = p2
    %u: ? = reprise.Linear(%x, %wu)
    %r: ? = Relu(%u)
    %y: ? = reprise.Linear(%r, %wd, %bd, %x)
    output %y
  })";
  ExpectParts(kText, 2);
  for (const int rank : {0, 1}) {
    const Graph graph = OfRank(kText, rank, 2);
    EXPECT_EQ(OpsOf(graph), "reprise.Linear Relu reprise.Linear reprise.AllReduce");
    const Node& last = graph.node(graph.NodeIds()[2]);
    EXPECT_EQ(last.inputs.size(), rank == 1 ? 4 : 2);
  }
}

TEST(ShardProductsTest, AnOperandThatIsNormalisedIsNotDivided) {
  const Graph graph = OfRank(R"(graph {
    input %x: f32[3, 64]
    param %wu: f32[64, 64] = p0
    param %w: f32[64] = p1
    param %wd: f32[64, 32] = p2
    %u: ? = reprise.Linear(%x, %wu)
    %n: ? = RMSNormalization(%u, %w)
    %y: ? = reprise.Linear(%n, %wd)
    output %y
  })",
                             0, 2);
  EXPECT_EQ(CountOps(graph, AllReduceOp::kName), 0);
}

constexpr char kScores[] = R"(graph {
  input %x: f32[3, 1, 40]
  param %w: f32[40, 160] = p0
  %y: ? = reprise.Linear(%x, %w)
  output %y
})";

TEST(ShardProductsTest, ColumnsOfScoresAreJoined) {
  for (const int ranks : {2, 3}) ExpectParts(kScores, ranks);
  const Graph graph = OfRank(kScores, 1, 2);
  EXPECT_THAT(WeightsOf(graph), ElementsAre(Shape{40, 64}));
  EXPECT_EQ(CountOps(graph, AllGatherOp::kName), 1);
}

// Three heads of keys, two heads of queries for each.
std::string Attention(absl::string_view end) {
  return absl::StrCat(R"(graph {
    input %x: f32[5, 1, 24]
    input %positions: i64[5]
    input %tables: i64[5]
    param %wq: f32[24, 48] = p0
    param %wk: f32[24, 24] = p1
    param %wv: f32[24, 24] = p2
    param %wo: f32[48, 24] = p3
    param %cosine: f32[5, 1, 1, 8] = p4
    param %sine: f32[5, 1, 1, 8] = p5
    param %norm: f32[8] = p6
    const %heads: i64[4] = {5, 1, 6, 8}
    const %joined: i64[3] = {5, 1, 48}
    const %kv: i64[2] = {5, 24}
    %q0: ? = reprise.Linear(%x, %wq)
    %q1: ? = Reshape(%q0, %heads)
    %q2: ? = RMSNormalization(%q1, %norm)
    %q3: ? = reprise.Rotary(%q2, %cosine, %sine)
    %q: ? = Reshape(%q3, %joined)
    %k0: ? = reprise.Linear(%x, %wk)
    %k: ? = Reshape(%k0, %kv)
    %v0: ? = reprise.Linear(%x, %wv)
    %v: ? = Reshape(%v0, %kv)
    %a: ? = reprise.PagedAttention(%q, %k, %v, %positions, %tables) {num_heads = 6, kv_heads = 3, scale = 0.25, slopes = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    )",
                      end, "\n output %y\n}");
}

TEST(ShardProductsTest, HeadsAreDividedWithTheProductsAroundThem) {
  const std::string text = Attention("%y: ? = reprise.Linear(%a, %wo)");
  EXPECT_THAT(WeightsOf(OfRank(text, 0, 2)),
              ElementsAre(Shape{24, 32}, Shape{24, 16}, Shape{24, 16}, Shape{32, 24}));
  const Graph graph = OfRank(text, 1, 2);
  EXPECT_THAT(WeightsOf(graph),
              ElementsAre(Shape{24, 16}, Shape{24, 8}, Shape{24, 8}, Shape{16, 24}));
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != PagedAttentionOp::kName) continue;
    EXPECT_EQ(node.attributes.Int("num_heads", 0), 2);
    EXPECT_EQ(node.attributes.Int("kv_heads", 0), 1);
    EXPECT_THAT(*node.attributes.Get<std::vector<float>>("slopes"), ElementsAre(5, 6));
  }
}

TEST(ShardProductsTest, HeadsAreJoinedWhereNoProductTakesThem) {
  const Graph graph = OfRank(Attention("%y: ? = Softmax(%a)"), 0, 3);
  EXPECT_EQ(OpsOf(graph),
            "reprise.Linear Reshape RMSNormalization reprise.Rotary Reshape reprise.Linear Reshape "
            "reprise.Linear Reshape reprise.PagedAttention reprise.AllGather Softmax");
}

TEST(ShardProductsTest, HeadsAreDividedWhoseNeighboursAreTurned) {
  const Graph graph = OfRank(R"(graph {
    input %x: f32[5, 64]
    param %wu: f32[64, 64] = p0
    param %wd: f32[64, 64] = p1
    const %pairs: i64[4] = {5, 2, 16, 2}
    const %flat: i64[2] = {5, 64}
    %u: ? = reprise.Linear(%x, %wu)
    %r: ? = Reshape(%u, %pairs)
    %a: ?, %b: ? = Split(%r) {axis = 3, num_outputs = 2}
    %n: ? = Neg(%b)
    %j: ? = Concat(%n, %a) {axis = -1}
    %f: ? = Reshape(%j, %flat)
    %y: ? = reprise.Linear(%f, %wd)
    output %y
  })",
                             1, 2);
  EXPECT_EQ(OpsOf(graph),
            "reprise.Linear Reshape Split Neg Concat Reshape reprise.Linear reprise.AllReduce");
}

TEST(ShardProductsTest, FewerHeadsThanRanksAreRefusedByName) {
  Graph graph = ParseSpecialized(Attention("%y: ? = reprise.Linear(%a, %wo)"));
  const auto changed = ShardProductsAmong({.rank = 0, .ranks = 4})->Run(graph);
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(changed.status().message()),
              HasSubstr("reprise.PagedAttention has 3 heads of keys and values"));
}

TEST(ShardProductsTest, OneRankChangesNothing) { ExpectUnchanged(*ShardProducts(), kGated); }

}  // namespace
}  // namespace reprise
