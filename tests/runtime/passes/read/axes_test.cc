#include "runtime/passes/read/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/shapes/dim_expression.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Dim Symbol(std::string name) { return {.symbol = std::move(name)}; }
Dim Constant(int64_t size) { return {.size = size}; }

std::vector<std::string> Labels(const MergedSymbols& merged) {
  std::vector<std::string> labels;
  for (const Axis& axis : merged.axes) labels.push_back(axis.label + "=" + axis.symbol);
  return labels;
}

// A model that is read, with the dims of its inputs.
struct Model {
  explicit Model(absl::string_view body)
      : graph(MustParse(absl::StrCat("graph {\n", body, "\n}"))) {
    for (const ValueId id : graph.inputs()) inputs.push_back(graph.value(id).dims);
  }
  // Returns a model that takes every size of `dims`, "N, L" for each input.
  static Model Of(const std::vector<std::string>& dims) {
    std::string text;
    for (size_t i = 0; i < dims.size(); ++i) {
      absl::StrAppend(&text, "input %x", i, ": f32[", dims[i], "]\n%y", i, ": ? = Relu(%x", i,
                      ")\noutput %y", i, "\n");
    }
    return Model(text);
  }
  MergedSymbols Merged() {
    return MergeSymbols(graph, inputs, [&] {
      ++readings;
      return true;
    });
  }
  Graph graph;
  std::vector<std::vector<Dim>> inputs;
  int readings = 0;
};

MergedSymbols Merged(absl::string_view body) { return Model(body).Merged(); }

std::vector<std::string> RowAxes(const std::vector<std::string>& dims) {
  std::vector<std::string> found;
  for (const Axis& axis : Model::Of(dims).Merged().axes) {
    if (axis.counts_rows) found.push_back(axis.label);
  }
  return found;
}

TEST(MergeSymbolsTest, NamedAxesStayAndAreLabelled) {
  Model model(R"(
    input %x: f32[N, L]
    input %y: f32[N, L]
    %z: ? = Add(%x, %y)
    output %z)");
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(Labels(merged), ElementsAre("batch=N", "sequence=L"));
  EXPECT_TRUE(merged.axes[0].is_batch);
  EXPECT_FALSE(merged.axes[1].is_batch);
  EXPECT_THAT(merged.fixed, IsEmpty());
  EXPECT_EQ(merged.note, "");
  EXPECT_LE(model.readings, 4);
}

TEST(MergeSymbolsTest, PicturesBesideTextsAreRowsOfTheirOwn) {
  const std::vector<std::string> dims = {"texts, length", "pictures, 3, 224, 224", "texts, length"};
  EXPECT_THAT(Labels(Model::Of(dims).Merged()),
              ElementsAre("texts=texts", "length=length", "pictures=pictures"));
  EXPECT_THAT(RowAxes(dims), ElementsAre("texts", "pictures"));
}

TEST(MergeSymbolsTest, PositionsAreNoRowsWhereverTheyStand) {
  EXPECT_THAT(RowAxes({"b, l", "b, l"}), IsEmpty());
  EXPECT_THAT(RowAxes({"steps, rows, 8", "2, rows, 16"}), IsEmpty());
  EXPECT_THAT(RowAxes({"nodes, 64", "2, edges"}), IsEmpty());
  EXPECT_THAT(RowAxes({"samples", "2, rows, 128"}), IsEmpty());
  EXPECT_THAT(RowAxes({"b, l", "1, l, b"}), IsEmpty());
}

TEST(MergeSymbolsTest, WhatTheModelCallsABatchCountsRowsWhereverItStands) {
  EXPECT_THAT(RowAxes({"batch_size, length, 80", "2, batch_size, 256"}), ElementsAre("batch_size"));
  EXPECT_THAT(RowAxes({"Batch, length"}), IsEmpty()) << "it is the batch";
}

TEST(MergeSymbolsTest, UnnamedDimsOfThreeInputsAreTwoAxes) {
  Model model(R"(
    input %ids: f32["ids:0", "ids:1"]
    input %mask: f32["mask:0", "mask:1"]
    input %types: f32["types:0", "types:1"]
    %x: ? = Concat(%ids, %mask) {axis = 0}
    %y: ? = Concat(%ids, %types) {axis = 0}
    %z: ? = Concat(%ids, %mask, %types) {axis = 1}
    output %x
    output %y
    output %z)");
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(Labels(merged), ElementsAre("batch=ids:0", "sequence=ids:1"));
  EXPECT_THAT(merged.axes[1].symbols, ElementsAre("ids:1", "mask:1", "types:1"));
  EXPECT_EQ(merged.representative.at("types:0"), "ids:0");
  EXPECT_THAT(merged.one_row, IsEmpty());
  // One for each symbol that is merged, two that agree, and one a symbol of the batch.
  EXPECT_LE(model.readings, 9);
  EXPECT_EQ(merged.Apply(model.inputs[2]), (std::vector<Dim>{Symbol("ids:0"), Symbol("ids:1")}));
}

TEST(MergeSymbolsTest, OneRowThatBroadcastsIsFound) {
  const MergedSymbols merged = Merged(R"(
    input %x: f32[b, s]
    input %y: f32[p, s]
    %z: ? = Add(%x, %y)
    output %z)");
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=s"));
  EXPECT_THAT(merged.one_row, UnorderedElementsAre("b", "p"));
}

TEST(MergeSymbolsTest, AnAxisIsCalledByTheNameThatTheModelGave) {
  EXPECT_THAT(Labels(Merged(R"(
    input %x: f32["ids:0"]
    input %y: f32[rows]
    %z: ? = Add(%x, %y)
    output %z)")),
              ElementsAre("batch=rows"));
}

TEST(MergeSymbolsTest, ClassesAcrossPositionsAreFound) {
  // The second input is transposed: [sequence, batch, hidden].
  const MergedSymbols merged = Merged(R"(
    input %a: f32["a:0", "a:1", 8]
    input %b: f32["b:0", "b:1", 8]
    %t: ? = Transpose(%b) {perm = [1, 0, 2]}
    %z: ? = Add(%a, %t)
    output %z)");
  EXPECT_EQ(merged.representative.at("b:1"), "a:0");
  EXPECT_EQ(merged.representative.at("b:0"), "a:1");
  // Dim 0 is not the same axis everywhere: no batch, two sequence-like axes.
  EXPECT_THAT(Labels(merged), ElementsAre("a:0=a:0", "a:1=a:1"));
}

TEST(MergeSymbolsTest, SymbolsThatMayDifferStayApart) {
  EXPECT_THAT(Labels(Model::Of({"batch, past", "batch, sequence"}).Merged()),
              ElementsAre("batch=batch", "past=past", "sequence=sequence"));
}

TEST(MergeSymbolsTest, ExpressionsAreDerivedNotAxes) {
  Model model(R"(
    input %x: f32["x:0", past]
    input %y: f32["y:0", "past + 1"]
    %z: ? = Concat(%x, %y) {axis = 1}
    output %z)");
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(Labels(merged), ElementsAre("batch=x:0", "sequence=past"));
  EXPECT_EQ(merged.Apply(model.inputs[1]), (std::vector<Dim>{Symbol("x:0"), Symbol("past + 1")}));
}

TEST(MergeSymbolsTest, ASumWithASymbolOfItsOwnIsAnAxis) {
  EXPECT_THAT(
      Labels(Model::Of({"batch, sequence", "batch, \"past + sequence\"", "batch, \"sequence - 1\""})
                 .Merged()),
      ElementsAre("batch=batch", "sequence=sequence", "past + sequence=past + sequence"));
  Model model(R"(
    input %x: f32[batch, sequence]
    input %y: f32[batch, "past + sequence"]
    input %z: f32[batch, "sequence - 1"]
    %s: ? = Add(%x, %y)
    output %s
    output %z)");
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(Labels(merged), ElementsAre("batch=batch", "sequence=sequence"));
  EXPECT_EQ(merged.Apply(model.inputs[1]), model.inputs[0]);
  EXPECT_EQ(merged.Apply(model.inputs[2]), model.inputs[2]);
}

TEST(MergeSymbolsTest, AnExpressionOverFixedSymbolsIsANumber) {
  Model model(R"(
    input %x: f32[n, k]
    input %y: f32["k + 1"]
    param %w: f32[3, 8] = p0
    %z: ? = MatMul(%x, %w)
    output %z
    output %y)");
  EXPECT_EQ(model.Merged().Apply(model.inputs[1]), std::vector<Dim>{Constant(4)});
}

// As attention over a cache that its client keeps: there must be room, and nothing is equal.
TEST(MergeSymbolsTest, SizesThatOnlyMayNotExceedOthersAreAxesOfTheirOwn) {
  Model model(R"(
    input %rows: f32[batch, 2, new, 4]
    input %mask: i64[batch, total]
    input %past: f32[batch, 2, past, 4]
    input %at: i64[batch]
    const %one: i64[1] = {1}
    %sizes: ? = Shape(%mask)
    %length: ? = Gather(%sizes, %one)
    %all: ? = reprise.AppendRows(%past, %rows, %at, %length)
    output %all)");
  const MergedSymbols merged = model.Merged();
  EXPECT_EQ(merged.note, "");
  EXPECT_THAT(Labels(merged), ElementsAre("batch=batch", "new=new", "total=total", "past=past"));
  EXPECT_LE(model.readings, 3);
}

TEST(MergeSymbolsTest, TermsOfExpressionsFollowTheirAxis) {
  const MergedSymbols merged = Merged(R"(
    input %x: f32[past, "x:1"]
    input %y: f32[old, "past + x:1 + 1"]
    %z: ? = Concat(%x, %y) {axis = 1}
    output %z)");
  EXPECT_EQ(merged.Apply(std::vector<Dim>{Symbol("old + x:1 + 1")}),
            std::vector<Dim>{Symbol("past + x:1 + 1")});
}

// Halves that are doubled again and added to the whole: multiples of 4 alone.
TEST(MergeSymbolsTest, ADimThatCanOnlyHaveOneSizeIsFixed) {
  Model model(R"(
    input %x: f32["x:0", "x:1", "x:2", "x:3"]
    param %w: f32[3, 3, 4, 4] = p0
    param %v: f32[3, 3, 4, 4] = p1
    %down: ? = Conv(%x, %w) {strides = [4, 4]}
    %up: ? = ConvTranspose(%down, %v) {strides = [4, 4]}
    %z: ? = Concat(%x, %up) {axis = 1}
    output %z)");
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(merged.fixed, ElementsAre(Pair("x:1", 3)));
  EXPECT_THAT(Labels(merged), ElementsAre("batch=x:0", "x:2=x:2", "x:3=x:3"));
  EXPECT_EQ(merged.Apply(model.inputs[0])[1], Constant(3));
  EXPECT_LE(model.readings, 20);
}

TEST(MergeSymbolsTest, AFixedDimZeroIsNoBatch) {
  const MergedSymbols merged = Merged(R"(
    input %x: f32["x:0", "x:1"]
    const %front: i64[1] = {0}
    %z: ? = Squeeze(%x, %front)
    output %z)");
  EXPECT_THAT(merged.fixed, ElementsAre(Pair("x:0", 1)));
  EXPECT_THAT(Labels(merged), ElementsAre("sequence=x:1"));
}

// A Reshape writes one row, whatever came in; the rows that came in are added to it.
TEST(MergeSymbolsTest, RowsThatAProductForcesAreFixed) {
  const MergedSymbols merged = Merged(R"(
    input %x: f32[b, s, 8]
    const %to: i64[3] = {1, -1, 8}
    %line: ? = Reshape(%x, %to)
    %z: ? = Concat(%line, %x) {axis = 2}
    output %z)");
  EXPECT_THAT(merged.fixed, ElementsAre(Pair("b", 1)));
  EXPECT_THAT(Labels(merged), ElementsAre("sequence=s"));
}

TEST(MergeSymbolsTest, ScalarsHaveNoBatchAndDoNotPreventOne) {
  EXPECT_THAT(Labels(Model::Of({"", "n"}).Merged()), ElementsAre("batch=n"));
  EXPECT_THAT(Model::Of({""}).Merged().axes, IsEmpty());
}

TEST(MergeSymbolsTest, AConstantDimZeroMeansNoBatch) {
  EXPECT_THAT(Labels(Model::Of({"1, n", "n"}).Merged()), ElementsAre("sequence=n"));
}

TEST(MergeSymbolsTest, AModelThatRefusesEverySizeKeepsItsSymbols) {
  const MergedSymbols merged = Merged(R"(
    input %x: f32["x:0", "x:1"]
    param %a: f32[8, 4] = p0
    param %b: f32[5, 4] = p1
    %y: ? = MatMul(%a, %b)
    output %y
    output %x)");
  EXPECT_THAT(Labels(merged), ElementsAre("batch=x:0", "sequence=x:1"));
  EXPECT_THAT(merged.note, HasSubstr("x:0, x:1"));
  EXPECT_FALSE(merged.error.ok());
}

TEST(MergeSymbolsTest, ManySymbolsTakeAReadingEach) {
  // 24 caches of [batch, heads fixed by the model, past, 64], every dim unnamed.
  std::string text, all;
  for (int i = 0; i < 24; ++i) {
    absl::StrAppend(&text, "input %kv", i, ": f32[\"kv", i, ":0\", 12, \"kv", i, ":2\", 64]\n");
    absl::StrAppend(&all, all.empty() ? "" : ", ", "%kv", i);
  }
  Model model(absl::StrCat(text, "%z: ? = Concat(", all, ") {axis = 3}\noutput %z"));
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(Labels(merged), UnorderedElementsAre("batch=kv0:0", "sequence=kv0:2"));
  EXPECT_LE(model.readings, 48 + 2 + 24);
}

TEST(MergeSymbolsTest, ADimZeroThatBroadcastsWithAConstantIsNotFixedAtOne) {
  const MergedSymbols merged = Merged(R"(
    input %x: f32[b, n]
    param %w: f32[17, 1] = p0
    %z: ? = Add(%x, %w)
    output %z)");
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=n"));
  EXPECT_THAT(merged.fixed, IsEmpty());
}

TEST(MergeSymbolsTest, RowsOfGigabytesAreAnAxis) {
  const MergedSymbols merged = Model::Of({"b, 268435456"}).Merged();
  EXPECT_THAT(merged.fixed, IsEmpty());
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b"));
}

TEST(MergeSymbolsTest, ChannelsThatBroadcastHaveTheSizeOfTheirConstant) {
  const MergedSymbols merged = Merged(R"(
    input %x: f32[b, c, h]
    param %w: f32[5, 1] = p0
    %z: ? = Mul(%x, %w)
    output %z)");
  EXPECT_THAT(merged.fixed, ElementsAre(Pair("c", 5)));
  EXPECT_THAT(merged.one_row, ElementsAre("c")) << "it may be 1 as well";
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=h"));
}

// A decoder with a cache: bias over past and new positions has a size that no other dim has.
TEST(MergeSymbolsTest, WhatIsTheSumOfOthersFollowsFromThem) {
  Model model(R"(
    input %x: f32[b, seq, 8]
    input %bias: f32[b, seq, total]
    input %past: f32[b, past, 8]
    %keys: ? = Concat(%past, %x) {axis = 1}
    %turned: ? = Transpose(%keys) {perm = [0, 2, 1]}
    %scores: ? = MatMul(%x, %turned)
    %z: ? = Add(%scores, %bias)
    output %z)");
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "seq=seq", "past=past"));
  EXPECT_THAT(merged.fixed, IsEmpty());
  EXPECT_THAT(merged.derived, SizeIs(1));
  EXPECT_EQ(DimSize(merged.Apply(model.inputs[1])[2], {{"seq", 5}, {"past", 40}}).value(), 45);
}

TEST(MergeSymbolsTest, AMaskThatComesFirstFollowsFromPastAndNew) {
  const MergedSymbols merged = Merged(R"(
    input %mask: f32[b, "mask:1"]
    input %x: f32[b, seq, 8]
    input %past: f32[b, past, 8]
    %keys: ? = Concat(%past, %x) {axis = 1}
    const %last: i64[1] = {2}
    %z: ? = ReduceSum(%keys, %last) {keepdims = 0}
    %y: ? = Add(%z, %mask)
    output %y)");
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "seq=seq", "past=past"));
  EXPECT_THAT(merged.derived, UnorderedElementsAre(Pair("mask:1", "past + seq")));
}

TEST(MergeSymbolsTest, FollowersOfMergedSymbolsAreNamedByTheirAxis) {
  Model model(R"(
    input %t: f32[b, t]
    input %t2: f32[c, t2]
    input %u: f32[b, u]
    input %v: f32[c, v]
    const %last: i64[1] = {1}
    %one: ? = ReduceSum(%t, %last) {keepdims = 1}
    %same: ? = Concat(%t, %t2) {axis = 0}
    %longer: ? = Concat(%t, %t2, %one) {axis = 1}
    %z: ? = Add(%longer, %u)
    %y: ? = Concat(%z, %v) {axis = 0}
    output %same
    output %y)");
  const MergedSymbols merged = model.Merged();
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=t"));
  EXPECT_EQ(merged.Apply(model.inputs[2])[1], Symbol("2 * t + 1"));
  EXPECT_EQ(merged.Apply(model.inputs[3])[1], Symbol("2 * t + 1"));
}

TEST(MergeSymbolsTest, OneMoreOrLess) {
  for (const int64_t added : {1, 2, 3, 5, 12}) {
    for (const bool more : {false, true}) {
      Model model(absl::StrCat(R"(
        input %x: f32[b, t]
        input %y: f32[b, u]
        const %pads: i64[4] = {0, 0, 0, )",
                               added, "}\n %long: ? = Pad(%", more ? "x" : "y",
                               ", %pads)\n %z: ? = Add(%long, %", more ? "y" : "x",
                               ")\n output %z"));
      const MergedSymbols merged = model.Merged();
      EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=t")) << added;
      EXPECT_EQ(DimSize(merged.Apply(model.inputs[1])[1], {{"t", 20}}).value(),
                more ? 20 + added : 20 - added);
    }
  }
}

// Half of a length is no sum: nothing is merged, and nothing is fixed at a size that broadcasts.
TEST(MergeSymbolsTest, WhatFollowsInAnotherWayLeavesAllApart) {
  for (const std::string op : {"Add(%half, %y)", "Concat(%half, %y) {axis = 1}"}) {
    const MergedSymbols merged = Merged(absl::StrCat(R"(
      input %x: f32[b, 3, t]
      input %y: f32[b, 3, u]
      %half: ? = MaxPool(%x) {kernel_shape = [2], strides = [2]}
      %z: ? = )",
                                                     op, "\n output %z"));
    EXPECT_THAT(merged.fixed, IsEmpty());
    EXPECT_THAT(merged.derived, IsEmpty());
    EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "t=t", "u=u"));
    EXPECT_THAT(merged.note, HasSubstr("none were merged"));
  }
}

TEST(MergeSymbolsTest, NothingIsReadOnceTheTimeIsOver) {
  Model model = Model::Of({"a, b", "c, d"});
  EXPECT_NE(MergeSymbols(model.graph, model.inputs, [] { return false; }).note, "");
}

}  // namespace
}  // namespace reprise
