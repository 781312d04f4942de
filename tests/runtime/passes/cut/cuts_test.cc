#include "runtime/passes/cut/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/cut/cut_graph.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> CutNames(const Graph& graph, const std::set<std::string>& shape_inputs) {
  const CutAnalysis analysis = FindCuts(graph, shape_inputs);
  std::vector<std::string> names;
  for (const NodeId id : analysis.Cuts(graph)) {
    const Cut cut = DescribeCut(graph, analysis, id);
    names.push_back(cut.node + " " + std::to_string(cut.level));
  }
  return names;
}

TEST(CutsTest, WhatIsMadeOfShapesAloneIsNoCut) {
  const Graph graph = MustParse(R"(graph {
    input %x: f32[batch, sequence]
    const %zero: i64[1] = {0}
    %shape: ? = Shape(%x)
    %ones: ? = ConstantOfShape(%shape)
    %positions: ? = NonZero(%ones)
    %y: ? = Slice(%positions, %zero, %shape, %zero)
    output %y
  })");
  EXPECT_THAT(CutNames(graph, {}), IsEmpty());
  EXPECT_EQ(CutAtData(graph, {}), nullptr);
}

constexpr absl::string_view kSlice = R"(graph {
  input %x: f32[batch, sequence]
  input %ends: i64[1]
  const %zero: i64[1] = {0}
  %y: ? = Slice(%x, %zero, %ends, %zero) @cut_here
  output %y
})";

TEST(CutsTest, AnOperandOfDataIsACutAndAShapeInputIsNone) {
  EXPECT_THAT(CutNames(MustParse(kSlice), {}), ElementsAre("cut_here 0"));
  EXPECT_THAT(CutNames(MustParse(kSlice), {"ends"}), IsEmpty());
}

TEST(CutsTest, LevelsCountCutsBehindEachOther) {
  const Graph graph = MustParse(R"(graph {
    input %x: f32[n]
    %a: ? = NonZero(%x) @first
    %b: ? = Neg(%x)
    %c: ? = NonZero(%b) @beside
    %d: ? = Mul(%a, %a)
    %e: ? = NonZero(%d) @second
    output %e
    output %c
  })");
  EXPECT_THAT(CutNames(graph, {}), UnorderedElementsAre("first 0", "beside 0", "second 1"));
}

TEST(CutsTest, ACutSaysWhatItDependsOn) {
  const Graph graph = MustParse(R"(graph {
    input %x: f32[n]
    input %mask: i64[n]
    const %zero: i64[1] = {0}
    const %axes: i64[1] = {0}
    %end: ? = ReduceMax(%mask, %axes)
    %y: ? = Slice(%x, %zero, %end, %zero) @"/slice"
    output %y
  })");
  const CutAnalysis analysis = FindCuts(graph, {});
  ASSERT_EQ(analysis.Cuts(graph).size(), 1);
  const Cut cut = DescribeCut(graph, analysis, analysis.Cuts(graph)[0]);
  EXPECT_EQ(cut.op, "Slice");
  EXPECT_EQ(cut.why,
            "the size of its result depends on the elements of 'end', which is computed from "
            "'mask'");
}

TEST(CutGraphTest, TheFrontIsWhatComesBeforeAndSectionsLieBetween) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n, 4]
    input %unused: f32[m]
    %hidden: ? = Neg(%x)
    %where: ? = NonZero(%hidden) @where
    %indices: ? = Transpose(%where)
    %y: ? = GatherND(%hidden, %indices)
    output %y
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 2);
  EXPECT_EQ(Print(*cut->stages[0].section.graph), R"(graph {
  input %x: f32[n, 4]
  input %unused: f32[m]
  %hidden: ? = Neg(%x)
  output %hidden
}
)");
  ASSERT_EQ(cut->stages[0].nodes.size(), 1);
  EXPECT_THAT(cut->stages[0].nodes[0].inputs, ElementsAre("hidden"));
  EXPECT_THAT(cut->stages[0].nodes[0].outputs, ElementsAre("where"));
  const GraphSection& section = cut->stages[1].section;
  EXPECT_EQ(section.label, "after NonZero 'where'");
  EXPECT_THAT(section.outputs, ElementsAre("y"));
  EXPECT_EQ(section.graph->inputs().size(), 2);
  EXPECT_EQ(section.graph->live_nodes(), 2);
}

// The count of tokens after a cut is the request's: it is computed there from the shape of the
// input, and the padded front hands over nothing of it.
TEST(CutGraphTest, WhatShapesSayIsComputedAgainBehindACut) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n, 4]
    %hidden: ? = Neg(%x)
    %shape: ? = Shape(%hidden)
    %ones: ? = ConstantOfShape(%shape)
    %where: ? = NonZero(%x)
    %rows: ? = Gather(%ones, %where) {axis = 0}
    output %rows
    output %ones
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  EXPECT_THAT(cut->stages[0].section.outputs, IsEmpty());
  const GraphSection& section = cut->stages[1].section;
  EXPECT_THAT(section.shape_only, ElementsAre("x"));
  // The ones are an output, and so are computed by themselves.
  ASSERT_EQ(cut->stages[1].nodes.size(), 2);
  EXPECT_EQ(cut->stages[1].nodes[1].node.op, "ConstantOfShape");
  EXPECT_FALSE(cut->stages[1].nodes[1].is_cut);
}

// A picture's size, which boxes are clipped to, makes no recipe of its own.
TEST(CutGraphTest, ANumberOfShapesIsHandedOverAsAnElement) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n, m]
    const %last: i64[] = {1}
    %shape: ? = Shape(%x)
    %side: ? = Gather(%shape, %last) {axis = 0}
    %limit: ? = Cast(%side) {to = 1}
    %where: ? = NonZero(%x)
    %found: ? = Cast(%where) {to = 1}
    %y: ? = Min(%found, %limit)
    output %y
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 2);
  std::vector<std::string> known;
  for (const EagerNode& node : cut->stages[0].nodes) {
    if (!node.is_cut) known.push_back(node.node.op);
  }
  EXPECT_THAT(known, ElementsAre("Shape", "Gather", "Cast"));
  const GraphSection& section = cut->stages[1].section;
  std::vector<std::string> inputs;
  for (const ValueId id : section.graph->inputs()) inputs.push_back(section.graph->value(id).name);
  EXPECT_THAT(inputs, UnorderedElementsAre("limit", "where"));
  EXPECT_THAT(section.shape_only, IsEmpty());
}

TEST(CutGraphTest, ANumberThatDecidesAShapeAsWellIsComputedInThePiece) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n, m]
    %shape: ? = Shape(%x)
    %where: ? = NonZero(%x)
    %sum: ? = Add(%where, %where)
    %filled: ? = Expand(%sum, %shape)
    %y: ? = Mul(%filled, %shape)
    output %y
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  const GraphSection& section = cut->stages[1].section;
  EXPECT_THAT(section.shape_only, ElementsAre("x"));
  EXPECT_EQ(section.graph->NodeIds().size(), 4u);
}

// The branch that is not taken may not be computable.
TEST(CutGraphTest, ANumberForOneBranchAloneIsComputedThere) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n, m]
    const %third: i64[] = {2}
    const %two: i64[] = {2}
    %shape: ? = Shape(%x)
    %depth: ? = Gather(%shape, %third) {axis = 0}
    %rank: ? = Size(%shape)
    %flat: ? = Equal(%rank, %two)
    %where: ? = NonZero(%x)
    %deep: ? = Mul(%where, %depth)
    %y: ? = If(%flat, %where, %deep)
    output %y
    output %where
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  for (const CutGraph::Stage& stage : cut->stages) {
    for (const EagerNode& node : stage.nodes) EXPECT_TRUE(node.is_cut) << node.node.op;
  }
}

constexpr absl::string_view kChoice = R"(graph {
  input %x: f32[n]
  input %flag: bool[m]
  %both: ? = Neg(%x)
  %first: ? = Exp(%both)
  %second: ? = NonZero(%x) @inside
  %f: ? = Cast(%second) {to = 1}
  %y: ? = If(%flag, %first, %f) @choice
  output %y
  output %both
})";

TEST(CutGraphTest, BranchesOfACutRunOnlyWhenTaken) {
  const auto cut = CutAtData(MustParse(kChoice), {});
  ASSERT_NE(cut, nullptr);
  EXPECT_THAT(cut->stages[0].section.outputs, ElementsAre("both"));
  ASSERT_EQ(cut->stages[0].nodes.size(), 1);
  const EagerNode& choice = cut->stages[0].nodes[0];
  EXPECT_THAT(choice.inputs, ElementsAre("flag"));
  ASSERT_NE(choice.then_branch, nullptr);
  EXPECT_THAT(choice.then_branch->outputs, ElementsAre("first"));
  EXPECT_EQ(choice.then_branch->stages.size(), 1);
  EXPECT_EQ(choice.else_branch->stages.size(), 2);
  EXPECT_THAT(choice.else_branch->stages[0].section.label, HasSubstr("second branch of If"));
}

TEST(CutGraphTest, ABranchTakesAShapeFromWhereItIsAtHand) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n]
    input %flag: bool[m]
    %both: ? = Neg(%x)
    %shape: ? = Shape(%both)
    %zeros: ? = ConstantOfShape(%shape)
    %y: ? = If(%flag, %zeros, %both)
    output %y
    output %both
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  const EagerNode& choice = cut->stages[0].nodes[0];
  EXPECT_EQ(Print(*choice.then_branch->stages[0].section.graph).find("Neg"), std::string::npos);
  EXPECT_THAT(choice.else_branch->outputs, ElementsAre("both"));
  EXPECT_THAT(choice.else_branch->stages[0].section.outputs, IsEmpty());
}

TEST(CutGraphTest, ACutInABranchCutsItsIfWhateverTheConditionIs) {
  EXPECT_THAT(CutNames(MustParse(kChoice), {"flag"}), ElementsAre("choice 0"));
}

// Returns the cuts of a chain of `links`, each of which ends in %v<number>, and all that lie in
// branches.
size_t CutsOfChain(int links, absl::string_view link) {
  std::string text =
      "graph {\n  input %v0: f32[n]\n  input %flag: bool[m]\n  input %other: bool[m]\n";
  for (int i = 1; i <= links; ++i) {
    absl::StrAppend(&text, absl::StrReplaceAll(link, {{"%v-", absl::StrCat("%v", i - 1)},
                                                      {"%#", absl::StrCat("%n", i)},
                                                      {"%v+", absl::StrCat("%v", i)}}));
  }
  absl::StrAppend(&text, "  output %v", links, "\n}");
  const auto cut = CutAtData(MustParse(text), {});
  return cut == nullptr ? 0 : cut->cuts.size();
}

// Imputers are written in this way, a choice for each column: with a copy for each branch they
// would take 2^40 copies.
TEST(CutGraphTest, WhatBothBranchesReadStandsInFrontOfThem) {
  EXPECT_EQ(CutsOfChain(40, R"(
  %#e: ? = Exp(%v-)
  %v+: ? = If(%flag, %#e, %v-)
)"),
            40u);
  // The branch of a branch, and the nodes after it.
  EXPECT_EQ(CutsOfChain(40, R"(
  %#e: ? = Exp(%v-)
  %#i: ? = If(%other, %#e, %v-)
  %#s: ? = Neg(%#i)
  %v+: ? = If(%flag, %#s, %v-)
)"),
            80u);
}

// Few copies: nodes that two branches of the file share run when one of them is taken, not before.
TEST(CutGraphTest, WhatStandsInBranchesAloneStaysThere) {
  const auto cut = CutAtData(MustParse(R"(graph {
    input %x: f32[n]
    input %i: i64[m]
    input %flag: bool[k]
    %row: ? = Gather(%x, %i)
    %positive: ? = Cast(%row) {to = 9}
    %twice: ? = Add(%x, %x)
    %inner: ? = If(%positive, %twice, %x)
    %a: ? = Relu(%inner)
    %b: ? = Abs(%inner)
    %y: ? = If(%flag, %a, %x)
    %z: ? = If(%flag, %b, %x)
    output %y
    output %z
  })"),
                             {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages[0].nodes.size(), 2);
  for (const EagerNode& choice : cut->stages[0].nodes) {
    EXPECT_EQ(choice.then_branch->cuts.size(), 1);
  }
  EXPECT_EQ(Print(*cut->stages[0].section.graph).find("Gather"), std::string::npos);
}

TEST(CutGraphTest, WhatBranchesOfSeveralReadStandsInFrontOfThem) {
  EXPECT_EQ(CutsOfChain(40, R"(
  %#e: ? = Exp(%v-)
  %#a: ? = If(%flag, %#e, %v0)
  %#b: ? = If(%other, %v-, %v0)
  %v+: ? = Add(%#a, %#b)
)"),
            80u);
}

// Nodes that no iteration changes are computed in front of the loop; an iteration's part of a
// sequence is looked up without a section around it.
TEST(CutGraphTest, TheBodyOfALoopHoldsWhatIterationsChange) {
  const Graph graph = MustParse(R"(graph {
    input %x: f32[n, 4]
    input %s: f32[t, n, 4]
    param %w: f32[4, 4] = p0
    const %trips: i64[] = {3}
    %i: ?, %go: ?, %a: ? = reprise.LoopStep() {loop = [0]}
    %shared: ? = MatMul(%x, %w)
    %part: ? = Gather(%s, %i)
    %p: ? = MatMul(%a, %w)
    %q: ? = Add(%p, %shared)
    %next: ? = Add(%q, %part)
    %y: ?, %all: ? = Loop(%trips, _, %x, %go, %next, %next) {carried = [1], loop = [0]}
    output %y
    output %all
  })");
  const auto cut = CutAtData(graph, {});
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(cut->stages.size(), 2u);
  EXPECT_THAT(cut->stages[0].section.outputs, ElementsAre("shared"));
  ASSERT_EQ(cut->stages[0].nodes.size(), 1u);
  const EagerNode& loop = cut->stages[0].nodes[0];
  EXPECT_THAT(loop.inputs, ElementsAre("trips", "", "x"));
  ASSERT_NE(loop.body, nullptr);
  EXPECT_THAT(loop.body->begins_with, ElementsAre("i", "go", "a"));
  EXPECT_EQ(loop.body->scanned.size(), 1u);
  const CutGraph& body = *loop.body->graph;
  EXPECT_THAT(body.outputs, ElementsAre("go", "next", "next"));
  ASSERT_EQ(body.stages.size(), 2u);
  EXPECT_THAT(body.stages[0].section.outputs, ElementsAre("q"));
  ASSERT_EQ(body.stages[0].nodes.size(), 1u);
  EXPECT_EQ(body.stages[0].nodes[0].node.op, "Gather");
  EXPECT_THAT(body.stages[1].section.outputs, ElementsAre("next"));
}

// An inner loop that no outer iteration changes leaves nothing in the outer body.
TEST(CutGraphTest, ALoopWithinALoopIsACutOfItsBody) {
  const auto text = [](absl::string_view carried) {
    return absl::StrCat(R"(graph {
      input %x: f32[n, 4]
      const %trips: i64[] = {3}
      %i: ?, %go: ?, %a: ? = reprise.LoopStep() {loop = [0]}
      %j: ?, %on: ?, %b: ? = reprise.LoopStep() {loop = [1]}
      %turned: ? = Neg(%b)
      %inner: ? = Loop(%trips, _, %)",
                        carried, R"(, %on, %turned) {carried = [1], loop = [1]}
      %next: ? = Add(%a, %inner)
      %y: ? = Loop(%trips, _, %x, %go, %next) {carried = [1], loop = [0]}
      output %y
    })");
  };
  const auto loops_of = [](const CutGraph& graph) {
    int loops = 0;
    for (const CutGraph::Stage& stage : graph.stages) {
      for (const EagerNode& node : stage.nodes) loops += node.body != nullptr;
    }
    return loops;
  };
  const auto changed = CutAtData(MustParse(text("a")), {});
  ASSERT_EQ(loops_of(*changed), 1);
  EXPECT_EQ(loops_of(*changed->stages[0].nodes[0].body->graph), 1);
  const auto same = CutAtData(MustParse(text("x")), {});
  EXPECT_EQ(loops_of(*same), 2);
}

TEST(CutsTest, EverywhereEachNodeOnDataIsACutAndShapesAreNone) {
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, 4]
  param %w: f32[4, 64] = p0
  %h: f32 = MatMul(%x, %w)
  %s: i64 = Shape(%x)
  %e: f32 = Relu(%h)
  output %e
  output %s
})");
  const CutAnalysis analysis = FindCuts(graph, {}, /*is_body=*/false, {.everywhere = true});
  std::vector<std::string> ops;
  for (const NodeId id : analysis.Cuts(graph)) ops.push_back(graph.node(id).op);
  EXPECT_THAT(ops, testing::ElementsAre("MatMul", "Relu"));
  const auto cut = CutAtData(graph, {}, {.everywhere = true});
  ASSERT_NE(cut, nullptr);
  EXPECT_EQ(cut->cuts.size(), 2);
  EXPECT_EQ(cut->cuts[0].why, "the model runs op by op");
}

}  // namespace
}  // namespace reprise
