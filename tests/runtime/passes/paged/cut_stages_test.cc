#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

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

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns a decoder's step over 5 tokens, of which 2 are picked: attention and a product a layer,
// with the residual; the inner width of each product by layer. `skips`: each layer also adds the
// result of the first one.
std::string StepOf(const std::vector<int>& widths, bool skips = false) {
  std::string text = R"(graph {
    input %ids: f32[5, 1, 24]
    input %reprise.positions: i64[5]
    input %tables: i64[5]
    input %reprise.segments: i32[3]
    param %angles: f32[64, 24] = p0
    const %kv: i64[2] = {5, 24}
    %angle: ? = Gather(%angles, %reprise.positions) {axis = 0}
  )";
  int parameter = 1;
  std::string x = "ids";
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string n = absl::StrCat(i);
    const auto weight = [&](const std::string& name, int rows, int columns) {
      absl::StrAppend(&text, "param %", name, n, ": f32[", rows, ", ", columns, "] = p",
                      parameter++, "\n");
    };
    weight("wk", 24, 24);
    weight("wu", 24, widths[i]);
    weight("wd", widths[i], 24);
    const std::string more = skips && i > 1 ? "z1" : "x" + n;
    absl::StrAppend(
        &text, "%k0", n, ": ? = reprise.Linear(%", x, ", %wk", n, ")\n%k1", n, ": ? = Reshape(%k0",
        n, ", %kv)\n%k", n, ": ? = Mul(%k1", n, ", %angle)\n%a", n,
        ": ? = reprise.PagedAttention(%", x, ", %k", n, ", %k", n,
        ", %reprise.positions, %tables) {num_heads = 3, kv_heads = 3, scale = 0.25, k_cache = ", n,
        "}\n%x", n, ": ? = Add(%", x, ", %a", n, ")\n%u", n, ": ? = reprise.Linear(%x", n, ", %wu",
        n, ")\n%d", n, ": ? = reprise.Linear(%u", n, ", %wd", n, ")\n%y", n, ": ? = Add(%x", n,
        ", %d", n, ")\n%z", absl::StrCat(i + 1), ": ? = Add(%y", n, ", %", more, ")\n");
    x = absl::StrCat("z", i + 1);
  }
  absl::StrAppend(&text, "param %w: f32[24, 40] = p", parameter, R"(
    %picked: ? = reprise.SegmentReduce(%)",
                  x, R"(, %reprise.segments) {often_fewer = 1, reduction = "last"}
    %scores: ? = reprise.Linear(%picked, %w)
    output %scores
  })");
  return text;
}

Graph StageOf(absl::string_view text, int rank, int ranks) {
  Graph graph = ParseSpecialized(text);
  const auto changed =
      CutStagesAmong({.rank = rank, .ranks = ranks, .parallelism = Parallelism::kPipeline})
          ->Run(graph);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(graph.Compact());
  const absl::Status status = Verify(graph, true);
  EXPECT_TRUE(status.ok()) << status << "\n" << Print(graph);
  return graph;
}

// Returns the caches of the attentions of a rank.
std::vector<int64_t> CachesOf(const Graph& graph) {
  std::vector<int64_t> layers;
  for (const NodeId id : graph.NodeIds()) {
    if (graph.node(id).op != PagedAttentionOp::kName) continue;
    layers.push_back(graph.node(id).attributes.Int("k_cache", 0));
  }
  return layers;
}

// Returns root and shape of each exchange, in order.
std::vector<std::pair<int64_t, Shape>> ExchangesOf(const Graph& graph) {
  std::vector<std::pair<int64_t, Shape>> exchanges;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != BroadcastOp::kName) continue;
    exchanges.emplace_back(BroadcastOp::From(node).root, *ShapeOf(graph, node.outputs[0]));
  }
  return exchanges;
}

TEST(CutStagesTest, EachRankKeepsItsLayersAndTheirWeights) {
  const std::string text = StepOf({120, 96, 96, 96});
  const Graph first = StageOf(text, 0, 2), second = StageOf(text, 1, 2);
  EXPECT_THAT(CachesOf(first), ElementsAre(0, 1));
  EXPECT_THAT(CachesOf(second), ElementsAre(2, 3));
  EXPECT_EQ(CountOps(first, LinearOp::kName), 6);
  EXPECT_EQ(CountOps(second, LinearOp::kName), 7) << "the scores";
  // Both compute the angles of positions.
  EXPECT_EQ(CountOps(first, "Gather"), 1);
  EXPECT_EQ(CountOps(second, "Gather"), 1);
}

TEST(CutStagesTest, AllRanksExchangeTheSameInOneOrder) {
  for (const bool skips : {false, true}) {
    const std::string text = StepOf({96, 96, 96, 96, 96}, skips);
    for (const int ranks : {2, 3, 4, 5}) {
      const auto wanted = ExchangesOf(StageOf(text, 0, ranks));
      ASSERT_EQ(wanted.size(), static_cast<size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank) {
        const Graph graph = StageOf(text, rank, ranks);
        EXPECT_EQ(ExchangesOf(graph), wanted) << rank << " of " << ranks;
        // Each descends from the one before: no replay can make them in another order.
        std::vector<NodeId> exchanges;
        for (const NodeId id : graph.NodeIds()) {
          if (graph.node(id).op == BroadcastOp::kName) exchanges.push_back(id);
        }
        for (size_t i = 1; i < exchanges.size(); ++i) {
          std::vector<NodeId> left = {exchanges[i]};
          bool found = false;
          while (!left.empty() && !found) {
            const Node& node = graph.node(left.back());
            left.pop_back();
            for (const ValueId input : node.inputs) {
              const NodeId producer = ProducerOf(graph, input);
              found = found || producer == exchanges[i - 1];
              if (producer != kNone) left.push_back(producer);
            }
          }
          EXPECT_TRUE(found) << i << " of rank " << rank << " of " << ranks << "\n" << Print(graph);
        }
      }
    }
  }
}

TEST(CutStagesTest, StagesEndWhereTheFewestValuesCrossAndWeightsAreEven) {
  // One value of 24 numbers a token, then the scores of the picked ones.
  EXPECT_THAT(
      ExchangesOf(StageOf(StepOf({96, 96, 96, 96}), 0, 2)),
      ElementsAre(std::pair<int64_t, Shape>(0, {5, 24}), std::pair<int64_t, Shape>(1, {2, 1, 40})));
  // A heavy last layer stands against all others.
  EXPECT_THAT(CachesOf(StageOf(StepOf({96, 96, 96, 960}), 0, 2)), ElementsAre(0, 1, 2));
  EXPECT_THAT(CachesOf(StageOf(StepOf({960, 96, 96, 96}), 0, 2)), ElementsAre(0));
  EXPECT_THAT(CachesOf(StageOf(StepOf({96, 960, 96, 96}), 1, 3)), ElementsAre(1));
}

TEST(CutStagesTest, ValuesThatSeveralLayersReadCrossTogether) {
  const std::string text = StepOf({96, 96, 96, 96}, true);
  const auto exchanges = ExchangesOf(StageOf(text, 0, 4));
  ASSERT_EQ(exchanges.size(), 4u);
  EXPECT_EQ(exchanges[0].second, (Shape{5, 24})) << "the result of the first layer";
  // It has reached all ranks with the first exchange: later ones have the last layer's alone.
  EXPECT_EQ(exchanges[1].second, (Shape{5, 24}));
  EXPECT_EQ(exchanges[2].second, (Shape{5, 24}));
}

TEST(CutStagesTest, FewerLayersThanRanksAreRefusedByName) {
  Graph graph = ParseSpecialized(StepOf({96, 96}));
  const auto changed = CutStagesAmong({.rank = 0, .ranks = 3})->Run(graph);
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(changed.status().message()),
              HasSubstr("cannot be cut into 3 stages: it has 2 layers"));
}

TEST(CutStagesTest, OneRankChangesNothing) { ExpectUnchanged(*CutStages(), StepOf({96, 96})); }

}  // namespace
}  // namespace reprise
