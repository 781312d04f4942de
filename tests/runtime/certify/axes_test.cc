#include "runtime/certify/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Sizes = std::map<std::string, int64_t>;

Dim Symbol(std::string name) { return {.symbol = std::move(name)}; }
Dim Constant(int64_t size) { return {.size = size}; }

std::vector<std::string> Labels(const MergedSymbols& merged) {
  std::vector<std::string> labels;
  for (const Axis& axis : merged.axes) labels.push_back(axis.label + "=" + axis.symbol);
  return labels;
}

TEST(MergeSymbolsTest, NamedAxesStayAndAreLabelled) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("N"), Symbol("L")},
                                                {Symbol("N"), Symbol("L")}};
  int tries = 0;
  const MergedSymbols merged = MergeSymbols(inputs, [&](const Sizes&) {
    ++tries;
    return true;
  });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=N", "sequence=L"));
  EXPECT_TRUE(merged.axes[0].is_batch);
  EXPECT_FALSE(merged.axes[1].is_batch);
  EXPECT_THAT(merged.fixed, IsEmpty());
  EXPECT_EQ(merged.note, "");
  EXPECT_LE(tries, 4);
}

std::vector<std::string> RowAxes(const std::vector<std::vector<Dim>>& inputs) {
  std::vector<std::string> found;
  for (const Axis& axis : MergeSymbols(inputs, [](const Sizes&) { return true; }).axes) {
    if (axis.counts_rows) found.push_back(axis.label);
  }
  return found;
}

TEST(MergeSymbolsTest, PicturesBesideTextsAreRowsOfTheirOwn) {
  const auto refuses_none = [](const Sizes&) { return true; };
  const std::vector<std::vector<Dim>> inputs = {
      {Symbol("texts"), Symbol("length")},
      {Symbol("pictures"), Constant(3), Constant(224), Constant(224)},
      {Symbol("texts"), Symbol("length")}};
  EXPECT_THAT(Labels(MergeSymbols(inputs, refuses_none)),
              ElementsAre("texts=texts", "length=length", "pictures=pictures"));
  EXPECT_THAT(RowAxes(inputs), ElementsAre("texts", "pictures"));
}

TEST(MergeSymbolsTest, PositionsAreNoRowsWhereverTheyStand) {
  EXPECT_THAT(RowAxes({{Symbol("b"), Symbol("l")}, {Symbol("b"), Symbol("l")}}), IsEmpty());
  EXPECT_THAT(RowAxes({{Symbol("steps"), Symbol("rows"), Constant(8)},
                       {Constant(2), Symbol("rows"), Constant(16)}}),
              IsEmpty());
  EXPECT_THAT(RowAxes({{Symbol("nodes"), Constant(64)}, {Constant(2), Symbol("edges")}}),
              IsEmpty());
  EXPECT_THAT(RowAxes({{Symbol("samples")}, {Constant(2), Symbol("rows"), Constant(128)}}),
              IsEmpty());
  EXPECT_THAT(RowAxes({{Symbol("b"), Symbol("l")}, {Constant(1), Symbol("l"), Symbol("b")}}),
              IsEmpty());
}

TEST(MergeSymbolsTest, WhatTheModelCallsABatchCountsRowsWhereverItStands) {
  EXPECT_THAT(RowAxes({{Symbol("batch_size"), Symbol("length"), Constant(80)},
                       {Constant(2), Symbol("batch_size"), Constant(256)}}),
              ElementsAre("batch_size"));
  EXPECT_THAT(RowAxes({{Symbol("Batch"), Symbol("length")}}), IsEmpty()) << "it is the batch";
}

TEST(MergeSymbolsTest, UnnamedDimsOfThreeInputsAreTwoAxes) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("ids:0"), Symbol("ids:1")},
                                                {Symbol("mask:0"), Symbol("mask:1")},
                                                {Symbol("types:0"), Symbol("types:1")}};
  int tries = 0;
  const MergedSymbols merged = MergeSymbols(inputs, [&](const Sizes& s) {
    ++tries;
    return s.at("ids:0") == s.at("mask:0") && s.at("ids:0") == s.at("types:0") &&
           s.at("ids:1") == s.at("mask:1") && s.at("ids:1") == s.at("types:1");
  });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=ids:0", "sequence=ids:1"));
  EXPECT_THAT(merged.axes[1].symbols, ElementsAre("ids:1", "mask:1", "types:1"));
  EXPECT_EQ(merged.representative.at("types:0"), "ids:0");
  EXPECT_THAT(merged.one_row, IsEmpty());
  EXPECT_LE(tries, 15);  // three of them for one row beside more, one a symbol of the batch
  EXPECT_EQ(merged.Apply(inputs[2]), (std::vector<Dim>{Symbol("ids:0"), Symbol("ids:1")}));
}

TEST(MergeSymbolsTest, OneRowThatBroadcastsIsFound) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Symbol("s")},
                                                {Symbol("p"), Symbol("s")}};
  const MergedSymbols merged =
      MergeSymbols(inputs, [](const Sizes& s) { return s.at("p") == s.at("b") || s.at("p") == 1; });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=s"));
  EXPECT_THAT(merged.one_row, ElementsAre("p"));
}

TEST(MergeSymbolsTest, AnAxisIsCalledByTheNameThatTheModelGave) {
  const MergedSymbols merged =
      MergeSymbols(std::vector<std::vector<Dim>>{{Symbol("ids:0")}, {Symbol("rows")}},
                   [](const Sizes& s) { return s.at("ids:0") == s.at("rows"); });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=rows"));
}

TEST(MergeSymbolsTest, ClassesAcrossPositionsAreFound) {
  // The second input is transposed: [sequence, batch, hidden].
  const std::vector<std::vector<Dim>> inputs = {{Symbol("a:0"), Symbol("a:1")},
                                                {Symbol("b:0"), Symbol("b:1"), Constant(8)}};
  const MergedSymbols merged = MergeSymbols(inputs, [&](const Sizes& s) {
    return s.at("a:0") == s.at("b:1") && s.at("a:1") == s.at("b:0");
  });
  EXPECT_EQ(merged.representative.at("b:1"), "a:0");
  EXPECT_EQ(merged.representative.at("b:0"), "a:1");
  // Dim 0 is not the same axis everywhere: no batch, two sequence-like axes.
  EXPECT_THAT(Labels(merged), ElementsAre("a:0=a:0", "a:1=a:1"));
}

TEST(MergeSymbolsTest, SymbolsThatMayDifferStayApart) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("batch"), Symbol("past")},
                                                {Symbol("batch"), Symbol("sequence")}};
  const MergedSymbols merged = MergeSymbols(inputs, [](const Sizes&) { return true; });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=batch", "past=past", "sequence=sequence"));
}

TEST(MergeSymbolsTest, ExpressionsAreDerivedNotAxes) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("x:0"), Symbol("past")},
                                                {Symbol("y:0"), Symbol("past + 1")}};
  const MergedSymbols merged =
      MergeSymbols(inputs, [](const Sizes& s) { return s.at("x:0") == s.at("y:0"); });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=x:0", "sequence=past"));
  EXPECT_EQ(merged.Apply(inputs[1]), (std::vector<Dim>{Symbol("x:0"), Symbol("past + 1")}));
}

TEST(MergeSymbolsTest, ASumWithASymbolOfItsOwnIsAnAxis) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("batch"), Symbol("sequence")},
                                                {Symbol("batch"), Symbol("past + sequence")},
                                                {Symbol("batch"), Symbol("sequence - 1")}};
  const auto free = MergeSymbols(inputs, [](const Sizes&) { return true; });
  EXPECT_THAT(Labels(free),
              ElementsAre("batch=batch", "sequence=sequence", "past + sequence=past + sequence"));
  const MergedSymbols merged = MergeSymbols(
      inputs, [](const Sizes& s) { return s.at("past + sequence") == s.at("sequence"); });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=batch", "sequence=sequence"));
  EXPECT_EQ(merged.Apply(inputs[1]), inputs[0]);
  EXPECT_EQ(merged.Apply(inputs[2]), inputs[2]);
}

TEST(MergeSymbolsTest, AnExpressionOverFixedSymbolsIsANumber) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("n"), Symbol("k")}, {Symbol("k + 1")}};
  const MergedSymbols merged = MergeSymbols(inputs, [](const Sizes& s) { return s.at("k") == 3; });
  EXPECT_EQ(merged.Apply(inputs[1]), std::vector<Dim>{Constant(4)});
}

TEST(MergeSymbolsTest, TermsOfExpressionsFollowTheirAxis) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("past"), Symbol("x:1")},
                                                {Symbol("old"), Symbol("past + x:1 + 1")}};
  const MergedSymbols merged =
      MergeSymbols(inputs, [](const Sizes& s) { return s.at("past") == s.at("old"); });
  EXPECT_EQ(merged.Apply(std::vector<Dim>{Symbol("old + x:1 + 1")}),
            std::vector<Dim>{Symbol("past + x:1 + 1")});
}

TEST(MergeSymbolsTest, ADimThatCanOnlyHaveOneSizeIsFixed) {
  const std::vector<std::vector<Dim>> inputs = {
      {Symbol("x:0"), Symbol("x:1"), Symbol("x:2"), Symbol("x:3")}};
  const MergedSymbols merged = MergeSymbols(
      inputs, [](const Sizes& s) { return s.at("x:1") == 3 && s.at("x:2") % 32 == 0; });
  EXPECT_THAT(merged.fixed, ElementsAre(Pair("x:1", 3)));
  EXPECT_THAT(Labels(merged), ElementsAre("batch=x:0", "x:2=x:2", "x:3=x:3"));
  EXPECT_EQ(merged.Apply(inputs[0])[1], Constant(3));
}

TEST(MergeSymbolsTest, AFixedDimZeroIsNoBatch) {
  const MergedSymbols merged =
      MergeSymbols(std::vector<std::vector<Dim>>{{Symbol("x:0"), Symbol("x:1")}},
                   [](const Sizes& s) { return s.at("x:0") == 1; });
  EXPECT_THAT(merged.fixed, ElementsAre(Pair("x:0", 1)));
  EXPECT_THAT(Labels(merged), ElementsAre("sequence=x:1"));
}

TEST(MergeSymbolsTest, ScalarsHaveNoBatchAndDoNotPreventOne) {
  const MergedSymbols merged = MergeSymbols(std::vector<std::vector<Dim>>{{}, {Symbol("n")}},
                                            [](const Sizes&) { return true; });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=n"));
  EXPECT_THAT(
      MergeSymbols(std::vector<std::vector<Dim>>{{}}, [](const Sizes&) { return true; }).axes,
      IsEmpty());
}

TEST(MergeSymbolsTest, AConstantDimZeroMeansNoBatch) {
  const MergedSymbols merged =
      MergeSymbols(std::vector<std::vector<Dim>>{{Constant(1), Symbol("n")}, {Symbol("n")}},
                   [](const Sizes&) { return true; });
  EXPECT_THAT(Labels(merged), ElementsAre("sequence=n"));
}

TEST(MergeSymbolsTest, AModelThatRefusesEverySizeKeepsItsSymbols) {
  const MergedSymbols merged =
      MergeSymbols(std::vector<std::vector<Dim>>{{Symbol("x:0"), Symbol("x:1")}},
                   [](const Sizes&) { return false; });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=x:0", "sequence=x:1"));
  EXPECT_THAT(merged.note, HasSubstr("x:0, x:1"));
}

TEST(MergeSymbolsTest, ManySymbolsTakeABoundedNumberOfTries) {
  // 24 caches of [batch, heads fixed by the model, past, 64], every dim unnamed.
  std::vector<std::vector<Dim>> inputs;
  for (int i = 0; i < 24; ++i) {
    const std::string name = "kv" + std::to_string(i);
    inputs.push_back({Symbol(name + ":0"), Constant(12), Symbol(name + ":2"), Constant(64)});
  }
  int tries = 0;
  const MergedSymbols merged = MergeSymbols(inputs, [&](const Sizes& s) {
    ++tries;
    for (const auto& [symbol, size] : s) {
      if (size != s.at(symbol.back() == '0' ? "kv0:0" : "kv0:2")) return false;
    }
    return true;
  });
  EXPECT_THAT(Labels(merged), UnorderedElementsAre("batch=kv0:0", "sequence=kv0:2"));
  EXPECT_LE(tries, 250);
}

TEST(MergeSymbolsTest, ADimZeroThatBroadcastsWithAConstantIsNotFixedAtOne) {
  const auto accepts = [](const Sizes& s) { return s.at("b") == 1 || s.at("b") == 17; };
  const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Symbol("n")}};
  const int64_t sizes[] = {1, 5, 17};
  const MergedSymbols merged = MergeSymbols(inputs, accepts, sizes);
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=n"));
  EXPECT_THAT(merged.fixed, IsEmpty());
  // Nothing says what else it could be.
  EXPECT_THAT(MergeSymbols(inputs, accepts).fixed, ElementsAre(Pair("b", 1)));
}

// A model whose rows are gigabytes takes one or two of them while it is loaded.
TEST(MergeSymbolsTest, RowsThatAreTooLargeTogetherAreAnAxisStill) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Constant(268435456)}};
  const MergedSymbols merged =
      MergeSymbols(inputs, [](const Sizes& sizes) { return sizes.at("b") <= 2; });
  EXPECT_THAT(merged.fixed, IsEmpty());
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b"));
}

TEST(MergeSymbolsTest, ChannelsThatBroadcastHaveTheSizeOfTheirConstant) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Symbol("c"), Symbol("h")}};
  const int64_t sizes[] = {4, 5};
  const MergedSymbols merged = MergeSymbols(
      inputs, [](const Sizes& s) { return s.at("c") == 1 || s.at("c") == 5; }, sizes);
  EXPECT_THAT(merged.fixed, ElementsAre(Pair("c", 5)));
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=h"));
}

// A decoder with a cache: bias over past and new positions has a size that no other dim has.
TEST(MergeSymbolsTest, WhatIsTheSumOfOthersFollowsFromThem) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Symbol("seq")},
                                                {Symbol("b"), Symbol("seq"), Symbol("total")},
                                                {Symbol("b"), Symbol("past"), Constant(8)}};
  const MergedSymbols merged = MergeSymbols(inputs, [](const Sizes& sizes) {
    // At 1 the bias broadcasts.
    return sizes.at("total") == sizes.at("past") + sizes.at("seq") || sizes.at("total") == 1;
  });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "seq=seq", "past=past"));
  EXPECT_THAT(merged.fixed, IsEmpty());
  EXPECT_THAT(merged.derived, UnorderedElementsAre(Pair("total", "past + seq")));
  EXPECT_EQ(merged.Apply(inputs[1])[2], Symbol("past + seq"));
}

TEST(MergeSymbolsTest, FollowersOfMergedSymbolsAreNamedByTheirAxis) {
  const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Symbol("t")},
                                                {Symbol("c"), Symbol("t2")},
                                                {Symbol("b"), Symbol("u")},
                                                {Symbol("c"), Symbol("v")}};
  const MergedSymbols merged = MergeSymbols(inputs, [](const Sizes& sizes) {
    return sizes.at("b") == sizes.at("c") && sizes.at("t") == sizes.at("t2") &&
           sizes.at("u") == 2 * sizes.at("t") + 1 && sizes.at("v") == sizes.at("u");
  });
  EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=t"));
  EXPECT_EQ(merged.Apply(inputs[2])[1], Symbol("2 * t + 1"));
  EXPECT_EQ(merged.Apply(inputs[3])[1], Symbol("2 * t + 1"));
}

TEST(MergeSymbolsTest, OneMoreOrLess) {
  for (const int64_t added : {-3, -2, -1, 1, 2, 3, 5, 12}) {
    const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Symbol("t")},
                                                  {Symbol("b"), Symbol("u")}};
    const MergedSymbols merged = MergeSymbols(inputs, [&](const Sizes& sizes) {
      return sizes.at("u") == sizes.at("t") + added || sizes.at("u") == 1;
    });
    EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "sequence=t")) << added;
    EXPECT_EQ(DimSize(merged.Apply(inputs[1])[1], {{"t", 20}}).value(), 20 + added);
  }
}

// Half of a length is no sum: nothing is merged, and nothing is fixed at a size that broadcasts.
TEST(MergeSymbolsTest, WhatFollowsInAnotherWayLeavesAllApart) {
  for (const bool broadcasts : {false, true}) {
    const std::vector<std::vector<Dim>> inputs = {{Symbol("b"), Constant(3), Symbol("t")},
                                                  {Symbol("b"), Constant(3), Symbol("u")}};
    const MergedSymbols merged = MergeSymbols(inputs, [&](const Sizes& sizes) {
      const int64_t half = sizes.at("t") / 2;
      return sizes.at("u") == half || (broadcasts && (sizes.at("u") == 1 || half == 1));
    });
    EXPECT_THAT(merged.fixed, IsEmpty());
    EXPECT_THAT(merged.derived, IsEmpty());
    EXPECT_THAT(Labels(merged), ElementsAre("batch=b", "t=t", "u=u"));
    EXPECT_THAT(merged.note, HasSubstr("none were merged"));
  }
}

TEST(MergeSymbolsTest, ChannelsStayFixedWithFewTries) {
  const std::vector<std::vector<Dim>> inputs = {
      {Symbol("x:0"), Symbol("x:1"), Symbol("x:2"), Symbol("x:3")}};
  int tries = 0;
  const MergedSymbols merged = MergeSymbols(inputs, [&](const Sizes& sizes) {
    ++tries;
    return sizes.at("x:1") == 3;
  });
  EXPECT_THAT(merged.fixed, UnorderedElementsAre(Pair("x:1", 3)));
  EXPECT_LE(tries, 100);
}

}  // namespace
}  // namespace reprise
