#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "runtime/passes/passes.h"
#include "tests/runtime/passes/pass_test_util.h"

namespace reprise {
namespace {

constexpr char kUpdates[] = R"(graph {
    input %data: f32[2, 3]
    input %updates: f32[2, 3]
    %y: ? = Relu(%updates)
    output %y
  })";

// A scatter of [2, 3] places that are the constant `indices`.
std::string Scatter(absl::string_view indices, absl::string_view attributes = "") {
  return absl::StrCat(R"(graph {
    input %data: f32[2, 3]
    input %updates: f32[2, 3]
    const %at: )",
                      indices, R"(
    %all: ? = ScatterND(%data, %at, %updates))",
                      attributes, R"(
    %y: ? = Relu(%all)
    output %y
  })");
}

TEST(ScatterRulesTest, AScatterToEveryPlaceIsWhatItWrites) {
  ExpectRewrite(*Canonicalize(),
                Scatter("i64[2, 3, 2] = {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}"), kUpdates);
  ExpectRewrite(*Canonicalize(), Scatter("i64[2, 1] = {0, 1}"), kUpdates);
}

TEST(ScatterRulesTest, OneThatMovesARowOrAddsStays) {
  ExpectUnchanged(*Canonicalize(), Scatter("i64[2, 1] = {1, 0}"));
  ExpectUnchanged(*Canonicalize(),
                  Scatter("i64[2, 3, 2] = {0, 0, 0, 1, 0, 2, 1, 0, 1, 2, 1, 1}"));
  ExpectUnchanged(*Canonicalize(), Scatter("i64[2, 1] = {0, 1}", R"( {reduction = "add"})"));
}

// A scatter to [2, 600, 700], larger than what is folded, whose places are rows, columns and the
// numbers of the batch, each an Expand of one dim; `columns` counts from `first_column` on.
std::string Grid(int first_column, absl::string_view rows_shape = "[600, 1]") {
  const auto counted = [](int first, int size) {
    std::vector<int> values(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i) values[static_cast<size_t>(i)] = (first + i) % size;
    return absl::StrJoin(values, ", ");
  };
  return absl::StrCat(R"(graph {
    input %data: f32[2, 600, 700]
    input %updates: f32[2, 600, 700]
    const %shape: i64[3] = {2, 600, 700}
    const %axis: i64[1] = {3}
    const %batch: i64[2, 1, 1] = {0, 1}
    const %rows: i64)",
                      rows_shape, " = {", counted(0, 600), R"(}
    const %columns: i64[700] = {)",
                      counted(first_column, 700), R"(}
    %b: ? = Expand(%batch, %shape)
    %r: ? = Expand(%rows, %shape)
    %c: ? = Expand(%columns, %shape)
    %b1: ? = Unsqueeze(%b, %axis)
    %r1: ? = Unsqueeze(%r, %axis)
    %c1: ? = Unsqueeze(%c, %axis)
    %at: ? = Concat(%b1, %r1, %c1) {axis = -1}
    %all: ? = ScatterND(%data, %at, %updates)
    %y: ? = Relu(%all)
    output %y
  })");
}

bool HasScatter(const std::string& text) {
  return absl::StrContains(RunPass(*Canonicalize(), text), "ScatterND");
}

TEST(ScatterRulesTest, AGridOfRowsAndColumnsIsFollowedThroughItsExpands) {
  EXPECT_FALSE(HasScatter(Grid(0)));
  EXPECT_FALSE(HasScatter(Grid(0, "[1, 600, 1]")));
}

TEST(ScatterRulesTest, AGridThatDoesNotCountEveryPlaceStays) { EXPECT_TRUE(HasScatter(Grid(1))); }

}  // namespace
}  // namespace reprise
