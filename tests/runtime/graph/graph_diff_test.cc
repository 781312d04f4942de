// Two graphs as text, and the words that tell them apart.
#include "runtime/graph/graph_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kGraph[] = R"(graph {
  input %x: f32[batch, 32]
  param %w: f32[32, 32] = p0
  const %low: f32[] = {0}
  const %high: f32[] = {0.7}
  const %table: i64[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
  %product: f32 = MatMul(%x, %w) @fc
  %act: f32 = Relu(%product) @act
  %clipped: f32 = Clip(%act, %low, %high) @clip
  %soft: f32 = Softmax(%clipped) {axis = -1} @soft
  %picked: f32 = Gather(%soft, %table) {axis = 1} @pick
  output %picked
})";

GraphDiff Diff(const std::vector<std::pair<const char*, const char*>>& changes) {
  const absl::StatusOr<Graph> was = Parse(kGraph);
  EXPECT_TRUE(was.ok()) << was.status();
  const absl::StatusOr<Graph> now = Parse(absl::StrReplaceAll(kGraph, changes));
  EXPECT_TRUE(now.ok()) << now.status();
  return DiffGraphs(*was, *now);
}

TEST(GraphDiffTest, NamesOfValuesAndNodesAreNoDifference) {
  EXPECT_THAT(Diff({{"%product", "%p"}, {"%high", "%upper"}, {"@act", "@activation"}}).causes,
              IsEmpty());
  EXPECT_THAT(Diff({{"= p0", "= p7"}}).causes, IsEmpty());
}

TEST(GraphDiffTest, AConstantIsToldByItsNodeAndBothValues) {
  EXPECT_THAT(Diff({{"{0.7}", "{0.5}"}}).causes,
              ElementsAre("constant 2 of Clip 'clip': 0.5, was 0.7"));
  EXPECT_THAT(
      Diff({{"9, 10, 11}", "8, 10, 10}"}}).causes,
      ElementsAre("constant 1 of Gather 'pick', element 9 of i64[12]: 8, was 9 (2 differ)"));
}

TEST(GraphDiffTest, WeightsAreToldByTheirRowsAndColumns) {
  EXPECT_THAT(Diff({{"f32[32, 32]", "f32[32, 33]"}}).causes,
              ElementsAre("MatMul 'fc' has 33 columns, was 32"));
}

TEST(GraphDiffTest, AttributesAndOps) {
  EXPECT_THAT(Diff({{"{axis = -1}", "{axis = 1}"}}).causes,
              ElementsAre("attribute axis of Softmax 'soft': 1, was -1"));
  EXPECT_THAT(Diff({{"Relu(", "Tanh("}}).causes,
              ElementsAre("Tanh 'act' stands where Relu 'act' was"));
}

TEST(GraphDiffTest, InputsComeFirst) {
  EXPECT_THAT(Diff({{"f32[batch, 32]", "f32[batch, 33]"}, {"f32[32, 32]", "f32[33, 32]"}}).causes,
              ElementsAre("input 'x': f32[batch, 33], was f32[batch, 32]",
                          "MatMul 'fc' has 33 rows of weights, was 32"));
}

TEST(GraphDiffTest, ANewNodeIsOneCauseAndWhatFollowsIsNone) {
  const GraphDiff diff =
      Diff({{"Clip(%act,", "Clip(%twice,"},
            {"  %clipped: f32 =", "  %twice: f32 = Add(%act, %act) @twice\n  %clipped: f32 ="}});
  EXPECT_THAT(diff.causes, ElementsAre("Add 'twice' is new, after Relu 'act'"));
  EXPECT_EQ(diff.nodes.size(), 6);
}

TEST(GraphDiffTest, AnOperandFromElsewhereIsTold) {
  EXPECT_THAT(Diff({{"Softmax(%clipped)", "Softmax(%act)"}}).causes,
              ElementsAre("input 0 of Softmax 'soft': the result of Relu 'act', was the result of "
                          "Clip 'clip'"));
}

TEST(GraphDiffTest, EveryNodeOfBothSidesStandsInOneRow) {
  const GraphDiff diff =
      Diff({{"  %act: f32 = Relu(%product) @act\n", ""}, {"Clip(%act,", "Clip(%product,"}});
  EXPECT_THAT(diff.causes, ElementsAre("Relu 'act' is gone (was after MatMul 'fc')"));
  size_t was = 0, now = 0;
  for (const NodePair& pair : diff.nodes) {
    was += pair.was != kNone;
    now += pair.now != kNone;
  }
  EXPECT_EQ(was, 5);
  EXPECT_EQ(now, 4);
}

TEST(GraphDiffTest, ALayerMoreOfManyAlikeIsOneStretch) {
  const auto layers = [](int count) {
    std::string text = "graph {\n  input %v0: f32[batch, 8]\n";
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&text, "  %a", i, ": f32 = Relu(%v", i, ") @relu", i, "\n  %v", i + 1,
                      ": f32 = Add(%a", i, ", %v", i, ") @add", i, "\n");
    }
    absl::StrAppend(&text, "  output %v", count, "\n}");
    return *Parse(text);
  };
  const GraphDiff diff = DiffGraphs(layers(300), layers(301));
  EXPECT_EQ(diff.causes.size(), 2);  // a Relu and an Add
  EXPECT_EQ(FirstCause(diff.causes), diff.causes[0] + ", and 1 more difference");
}

}  // namespace
}  // namespace reprise
