// Tables that are made of sizes, and along which dims their elements differ at some of them.
#include "runtime/verify/size_tables.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

// "-" where `name` is no such table, else the dims along which it differs, counted from the last
// one, and "?" where that is not known.
std::string DimsOf(const UnevenTables& tables, const std::string& name) {
  const auto found = tables.find(name);
  if (found == tables.end()) return "-";
  std::string text = found->second.unknown ? "?" : "";
  for (int dim = 0; dim < 8; ++dim) {
    if (found->second.Along(dim)) text += std::to_string(dim);
  }
  return text;
}

TEST(SizeTablesTest, ATableThatIsOneNumberAtSmallSizesDiffersWhereItsIndexIs) {
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, sequence]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %far: i64[] = {30}
  const %behind: i64[1] = {1}
  %shape: ? = Shape(%x)
  %size: ? = Gather(%shape, %one) {axis = 0}
  %places: ? = Range(%zero, %size, %one)
  %near: ? = Less(%places, %far)
  %column: ? = Unsqueeze(%near, %behind)
  %table: ? = Cast(%near) {to = 1}
  %ones: ? = ConstantOfShape(%shape)
  %share: ? = Cast(%size) {to = 1}
  %filled: ? = Expand(%share, %shape)
  %sum: ? = Add(%x, %table)
  %all: ? = Mul(%sum, %filled)
  output %all
  output %ones
  output %column
})");
  SizeTables tables(graph);
  const UnevenTables& found = tables.UnevenAt({.axes = {{"batch", 2}, {"sequence", 5}}});
  EXPECT_EQ(DimsOf(found, "places"), "0");
  EXPECT_EQ(DimsOf(found, "near"), "0");
  EXPECT_EQ(DimsOf(found, "table"), "0");
  EXPECT_EQ(DimsOf(found, "column"), "1");
  EXPECT_EQ(DimsOf(found, "ones"), "-");   // one number for all sizes
  EXPECT_EQ(DimsOf(found, "filled"), "");  // one number in itself, another one at other sizes
  EXPECT_EQ(DimsOf(found, "sum"), "");     // data
}

TEST(SizeTablesTest, RegionsThatAnAxisLeadsToAreLookedAt) {
  // Ones up to 700 positions, then as many as there are.
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, sequence]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %most: i64[] = {700}
  %shape: ? = Shape(%x)
  %size: ? = Gather(%shape, %one) {axis = 0}
  %ones: ? = ConstantOfShape(%shape)
  %few: ? = LessOrEqual(%size, %most)
  %places: ? = Range(%zero, %size, %one)
  %counted: ? = Cast(%places) {to = 1}
  %table: ? = If(%few, %ones, %counted)
  %y: ? = Mul(%x, %table)
  output %y
})");
  SizeTables tables(graph);
  const Binding small = {.axes = {{"batch", 2}, {"sequence", 5}}};
  EXPECT_THAT(DimsOf(tables.UnevenAt(small), "counted"), testing::HasSubstr("0"));
}

TEST(SizeTablesTest, NumbersThatAreTheSameAtAllSizesAreNoneOfSizes) {
  // Places in a dim of 4, and one that is chosen by a size.
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, 4]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %most: i64[] = {9}
  const %rows: f32[4] = {1, 2, 3, 4}
  const %others: f32[4] = {1, 2, 3, 5}
  %shape: ? = Shape(%x)
  %width: ? = Gather(%shape, %one) {axis = 0}
  %places: ? = Range(%zero, %width, %one)
  %beyond: ? = GreaterOrEqual(%places, %width)
  %batch: ? = Gather(%shape, %zero) {axis = 0}
  %few: ? = Less(%batch, %most)
  %row: ? = Where(%few, %rows, %others)
  %kept: ? = Where(%beyond, %row, %x)
  output %kept
})");
  SizeTables tables(graph);
  const UnevenTables& found = tables.UnevenAt({.axes = {{"batch", 2}}});
  EXPECT_EQ(DimsOf(found, "width"), "-");
  EXPECT_EQ(DimsOf(found, "places"), "-");
  EXPECT_EQ(DimsOf(found, "beyond"), "-");
  EXPECT_EQ(DimsOf(found, "few"), "");  // true at few rows, false at more
  EXPECT_EQ(DimsOf(found, "row"), "0");
}

TEST(SizeTablesTest, WithoutSizesThatTheModelTakesNothingIsEven) {
  const Graph graph = MustParse(R"(graph {
  input %x: f32[batch, 4]
  input %y: f32[batch, 3]
  %z: ? = Add(%x, %y)
  output %z
})");
  SizeTables tables(graph);
  EXPECT_EQ(DimsOf(tables.UnevenAt({.axes = {{"batch", 2}}}), "z"), "?");
}

}  // namespace
}  // namespace reprise
