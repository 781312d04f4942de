// Scans that find distances from the rows of a table, as exporters of classic models write them,
// and near misses.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Returns a Scan as the importer takes it apart; `sums` makes %sum of %difference.
std::string Scan(absl::string_view sums) {
  return absl::StrCat(R"(graph {
    input %x: f32[n, 3]
    input %table: f32[5, 3]
    const %first: i64[] = {0}
    const %one: i64[1] = {1}
    const %two: f32[] = {2}
    const %square: f32[] = {2}
    %shape: ? = Shape(%table)
    %count: ? = Gather(%shape, %first)
    %i: ?, %go: ? = reprise.LoopStep() {loop = [0]}
    %row: ? = Gather(%table, %i)
    %difference: ? = Sub(%x, %row)
    )",
                      sums, R"(
    %all: ? = Loop(%count, _, %go, %sum) {carried = [0], loop = [0], axes = [0], directions = [0]}
    output %all
  })");
}

Graph Rewritten(const std::string& text, bool expected = true) {
  absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  const absl::StatusOr<bool> changed = LoopDistances()->Run(*graph);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(*changed, expected) << text;
  EXPECT_TRUE(graph->Compact());
  return *std::move(graph);
}

constexpr char kSquares[] = "%sum: ? = ReduceSumSquare(%difference, %one) {keepdims = 0}";

TEST(LoopDistancesTest, EverySpellingIsFound) {
  struct Spelling {
    const char* sums;
    const char* ops;
    int64_t power;
  };
  constexpr char kPlain[] = "Transpose reprise.Distances Transpose";
  constexpr char kRooted[] = "Transpose reprise.Distances Sqrt Transpose";
  const Spelling kSpellings[] = {
      {kSquares, kPlain, 2},
      {"%sums: ? = ReduceSumSquare(%difference, %one) {keepdims = 0}\n%sum: ? = Identity(%sums)",
       kPlain, 2},
      {"%squares: ? = Mul(%difference, %difference)\n%sum: ? = ReduceSum(%squares, %one) {keepdims "
       "= 0}",
       kPlain, 2},
      {"%squares: ? = Pow(%difference, %two)\n%sum: ? = ReduceSum(%squares, %one) {keepdims = 0}",
       kPlain, 2},
      {"%d: ? = Abs(%difference)\n%squares: ? = Pow(%d, %two)\n%sum: ? = ReduceSum(%squares, %one) "
       "{keepdims = 0}",
       kPlain, 2},
      {"%d: ? = Abs(%difference)\n%sum: ? = ReduceSum(%d, %one) {keepdims = 0}", kPlain, 1},
      {"%sum: ? = ReduceL1(%difference, %one) {keepdims = 0}", kPlain, 1},
      {"%sum: ? = ReduceL2(%difference, %one) {keepdims = 0}", kRooted, 2},
      {"%sums: ? = ReduceSumSquare(%difference, %one) {keepdims = 0}\n%sum: ? = Sqrt(%sums)",
       kRooted, 2},
      {"%norms: ? = ReduceL2(%difference, %one) {keepdims = 0}\n%sum: ? = Sqrt(%norms)",
       "Transpose reprise.Distances Sqrt Sqrt Transpose", 2},
      {"const %p: f32[1] = {3}\n%d: ? = Abs(%difference)\n%cubes: ? = Pow(%d, %p)\n%sum: ? = "
       "ReduceSum(%cubes, %one) {keepdims = 0}",
       kPlain, 3},
      {"const %p: i64[] = {4}\n%terms: ? = Pow(%difference, %p)\n%sum: ? = ReduceSum(%terms, "
       "%one) {keepdims = 0}",
       kPlain, 4},
  };
  for (const Spelling& spelling : kSpellings) {
    SCOPED_TRACE(spelling.sums);
    const Graph graph = Rewritten(Scan(spelling.sums));
    EXPECT_EQ(OpsOf(graph), spelling.ops);
    for (const NodeId id : graph.NodeIds()) {
      if (graph.node(id).op != "reprise.Distances") continue;
      EXPECT_EQ(graph.node(id).attributes.Int("power", 0), spelling.power);
    }
  }
}

TEST(LoopDistancesTest, EitherSideColumnsAndStackedColumnsAreFound) {
  EXPECT_EQ(
      OpsOf(Rewritten(absl::StrReplaceAll(Scan(kSquares), {{"Sub(%x, %row)", "Sub(%row, %x)"}}))),
      "Transpose reprise.Distances Transpose");
  EXPECT_EQ(OpsOf(Rewritten(absl::StrReplaceAll(
                Scan(kSquares), {{"%table: f32[5, 3]", "%table: f32[3, 5]"},
                                 {"const %first: i64[] = {0}", "const %first: i64[] = {1}"},
                                 {"Gather(%table, %i)", "Gather(%table, %i) {axis = 1}"}}))),
            "reprise.Distances Transpose");
  EXPECT_EQ(OpsOf(Rewritten(absl::StrReplaceAll(Scan(kSquares), {{"axes = [0]", "axes = [1]"}}))),
            "Transpose reprise.Distances");
  // The count as a number, and rows that are computed.
  EXPECT_EQ(OpsOf(Rewritten(absl::StrReplaceAll(
                Scan(kSquares), {{"const %first: i64[] = {0}", "const %count: i64[] = {5}"},
                                 {"%shape: ? = Shape(%table)", "%scaled: ? = Mul(%x, %two)"},
                                 {"%count: ? = Gather(%shape, %first)", ""},
                                 {"Sub(%x, %row)", "Sub(%scaled, %row)"}}))),
            "Mul Transpose reprise.Distances Transpose");
}

// Any node may lie in front, and sizes that a request decides may be unknown.
TEST(LoopDistancesTest, RowsThatAreComputedAndOpenSizesAreFound) {
  const auto with = [](std::vector<std::pair<const absl::string_view, absl::string_view>> changes) {
    return OpsOf(Rewritten(absl::StrReplaceAll(Scan(kSquares), changes)));
  };
  constexpr char kPlain[] = "Transpose reprise.Distances Transpose";
  EXPECT_EQ(with({{"%x: f32[n, 3]", "%x: f32[n, k]"}}), kPlain);
  EXPECT_EQ(with({{"%x: f32[n, 3]", "%x: f32[n, 1]"}}), kPlain);
  EXPECT_EQ(with({{"%table: f32[5, 3]", "%table: f32[m, 3]"}}), kPlain);
  EXPECT_EQ(with({{"%x: f32[n, 3]", "%x: f32[n, k]\n    const %mean: f32[4] = {1, 2, 3, 4}"},
                  {"%table: f32[5, 3]", "%table: f32[5, 4]"},
                  {"%shape: ? = Shape(%table)",
                   "%shape: ? = Shape(%table)\n%centred: ? = Sub(%x, %mean)"},
                  {"Sub(%x, %row)", "Sub(%centred, %row)"}}),
            "Sub Transpose reprise.Distances Transpose");
  EXPECT_EQ(with({{"%x: f32[n, 3]", "%x: f64[n, 3]"}, {"%table: f32[5, 3]", "%table: f64[5, 3]"}}),
            kPlain);
  EXPECT_EQ(with({{"%shape: ? = Shape(%table)",
                   "%shape: ? = Shape(%table)\n%joined: ? = Concat(%x, %x) {axis = 1}\n"
                   "%turned: ? = Transpose(%table) {perm = [1, 0]}\n"
                   "%twice: ? = Concat(%turned, %table) {axis = 1}\n"
                   "%product: ? = MatMul(%x, %turned)\n%rows: ? = MatMul(%product, %table)"},
                  {"Sub(%x, %row)", "Sub(%rows, %row)"}}),
            "Transpose MatMul MatMul Transpose reprise.Distances Transpose");
}

TEST(LoopDistancesTest, WhatIsNearlyOneStays) {
  const std::string scan = Scan(kSquares);
  const std::pair<const char*, const char*> kChanges[] = {
      // Another axis, dims that are kept, another function of the difference.
      {"const %one: i64[1] = {1}", "const %one: i64[1] = {0}"},
      {"const %one: i64[1] = {1}", "const %one: i64[1] = {-2}"},
      {"{keepdims = 0}", "{keepdims = 1}"},
      {"ReduceSumSquare(%difference", "ReduceMax(%difference"},
      {"ReduceSumSquare(%difference", "ReduceSum(%difference"},
      {"Sub(%x, %row)", "Add(%x, %row)"},
      // The last iteration first; other slices than all, in order.
      {"directions = [0]", "directions = [1]"},
      {"%count: ? = Gather(%shape, %first)", "const %count: i64[] = {4}"},
      {"Shape(%table)", "Shape(%x)"},
      {"const %first: i64[] = {0}", "const %first: i64[] = {1}"},
      {"Shape(%table)", "Shape(%table) {start = 1}"},
      {"Gather(%table, %i)", "Gather(%table, %first)"},
      // A condition that may end it, before the first iteration or after it.
      {"Loop(%count, _, %go, %sum)", "Loop(%count, _, %stop, %sum)"},
      {"Loop(%count, _, %go, %sum)", "Loop(%count, %stop, %go, %sum)"},
      // The operands are no matrices, or of two dtypes.
      {"%x: f32[n, 3]", "%x: f32[n, 4, 3]"},
      {"%x: f32[n, 3]", "%x: f32[3]"},
      {"%table: f32[5, 3]", "%table: f32[5, 1, 3]"},
      {"%x: f32[n, 3]", "%x: f64[n, 3]"},
      {"%x: f32[n, 3]\n    input %table: f32[5, 3]", "%x: i64[n, 3]\n    input %table: i64[5, 3]"},
  };
  for (const auto& [from, to] : kChanges) {
    SCOPED_TRACE(to);
    std::string text = absl::StrReplaceAll(scan, {{from, to}});
    EXPECT_NE(text, scan);
    text = absl::StrReplaceAll(text, {{"input %x", "input %stop: bool[]\n    input %x"}});
    Rewritten(text, false);
  }
}

// Five rows at the sizes that are tried.
TEST(LoopDistancesTest, ACountOfATableThatIsComputedStays) {
  Rewritten(
      absl::StrReplaceAll(Scan(kSquares),
                          {{"%count: ? = Gather(%shape, %first)", "const %count: i64[] = {5}"},
                           {"%shape: ? = Shape(%table)", "%negative: ? = Neg(%table)"},
                           {"Gather(%table, %i)", "Gather(%negative, %i)"}}),
      false);
}

// The size of dim 0, asked for in the way in which others ask for dim 1's.
TEST(LoopDistancesTest, ACountOfAnotherDimStays) {
  const std::string by_columns =
      absl::StrReplaceAll(Scan(kSquares), {{"%table: f32[5, 3]", "%table: f32[3, 5]"},
                                           {"Gather(%table, %i)", "Gather(%table, %i) {axis = 1}"},
                                           {"Shape(%table)", "Shape(%table) {end = 1}"},
                                           {"%first: i64[] = {0}", "%first: i64[] = {-1}"}});
  Rewritten(by_columns, false);
}

TEST(LoopDistancesTest, OtherFunctionsOfTheDifferenceStay) {
  for (const char* sums : {
           // Powers: odd of signed numbers, broken, too high; a constant of more dims.
           "const %p: f32[] = {3}\n%t: ? = Pow(%difference, %p)\n%sum: ? = ReduceSum(%t, %one) "
           "{keepdims = 0}",
           "const %p: f32[] = {1.5}\n%d: ? = Abs(%difference)\n%t: ? = Pow(%d, %p)\n%sum: ? = "
           "ReduceSum(%t, %one) {keepdims = 0}",
           "const %p: f32[] = {17}\n%d: ? = Abs(%difference)\n%t: ? = Pow(%d, %p)\n%sum: ? = "
           "ReduceSum(%t, %one) {keepdims = 0}",
           "const %p: f32[1, 1, 1] = {2}\n%t: ? = Pow(%difference, %p)\n%sum: ? = "
           "ReduceSum(%t, %one) {keepdims = 0}",
           // Two values, the magnitude of something else.
           "%t: ? = Mul(%difference, %row)\n%sum: ? = ReduceSum(%t, %one) {keepdims = 0}",
           "%d: ? = Abs(%x)\n%sum: ? = ReduceSum(%d, %one) {keepdims = 0}",
       }) {
    SCOPED_TRACE(sums);
    Rewritten(Scan(sums), false);
  }
}

TEST(LoopDistancesTest, IfOneOfTheStackedResultsIsAnotherAllStay) {
  const std::string two = absl::StrReplaceAll(
      Scan(kSquares), {{"%all: ? = Loop(%count, _, %go, %sum)",
                        "%most: ? = ReduceMax(%difference, %one) {keepdims = 0}\n    %all: ?, "
                        "%others: ? = Loop(%count, _, %go, %sum, %most)"}});
  // The second is not read.
  EXPECT_EQ(OpsOf(Rewritten(two)), "Transpose reprise.Distances Transpose");
  Rewritten(absl::StrReplaceAll(two, {{"output %all", "output %all\n    output %others"}}), false);
}

// The rows depend on values that iterations hand on.
TEST(LoopDistancesTest, WhatIterationsChangeStays) {
  Rewritten(absl::StrReplaceAll(
                Scan(kSquares),
                {{"%go: ? = reprise.LoopStep()", "%go: ?, %x0: ? = reprise.LoopStep()"},
                 {"Sub(%x, %row)", "Sub(%x0, %row)"},
                 {"%all: ? = Loop(%count, _, %go, %sum) {carried = [0]",
                  "_, %all: ? = Loop(%count, _, %x, %go, %difference, %sum) {carried = [1]"}}),
            false);
}

// Values that no iteration changes are handed on, and read after the loop.
TEST(LoopDistancesTest, ACarriedResultThatIsReadKeepsTheLoop) {
  Rewritten(absl::StrReplaceAll(
                Scan(kSquares),
                {{"%go: ? = reprise.LoopStep()", "%go: ?, %x0: ? = reprise.LoopStep()"},
                 {"%all: ? = Loop(%count, _, %go, %sum) {carried = [0]",
                  "%last: ?, %all: ? = Loop(%count, _, %x, %go, %x0, %sum) {carried = [1]"},
                 {"output %all", "output %all\n    output %last"}}),
            false);
}

}  // namespace
}  // namespace reprise
