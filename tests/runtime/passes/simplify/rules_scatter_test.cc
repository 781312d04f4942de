#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr char kUpdates[] = R"(graph {
    input %data: f32[2, 3]
    input %updates: f32[2, 3]
    %y: ? = Relu(%updates)
    output %y
  })";

// Returns a scatter of [2, 3] places that are the constant `indices`.
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
  ExpectRewrite(*Canonicalize(), Scatter("i64[2, 3, 2] = {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}"),
                kUpdates);
  ExpectRewrite(*Canonicalize(), Scatter("i64[2, 1] = {0, 1}"), kUpdates);
}

TEST(ScatterRulesTest, OneThatMovesARowOrAddsStays) {
  ExpectUnchanged(*Canonicalize(), Scatter("i64[2, 1] = {1, 0}"));
  ExpectUnchanged(*Canonicalize(), Scatter("i64[2, 3, 2] = {0, 0, 0, 1, 0, 2, 1, 0, 1, 2, 1, 1}"));
  ExpectUnchanged(*Canonicalize(), Scatter("i64[2, 1] = {0, 1}", R"( {reduction = "add"})"));
  ExpectUnchanged(*Canonicalize(), Scatter("i64[2, 1] = {0, -1}"));
}

// 0 up to `size`, from `first` on and around.
std::string Counted(int size, int first = 0) {
  std::vector<int> values(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) values[static_cast<size_t>(i)] = (first + i) % size;
  return absl::StrJoin(values, ", ");
}

// A scatter to [2, 600, 600], larger than folded values, whose indices are three constants with
// their shapes, each an Expand; `concat` lists them.
struct Grid {
  std::string batch = "[2, 1, 1]";
  std::string rows = "[600, 1]";
  std::string columns = "[600]";
  std::string column_values = Counted(600);
  std::string concat = "Concat(%b1, %r1, %c1) {axis = -1}";

  std::string Result() const {
    return RunPass(*Canonicalize(), absl::StrCat(R"(graph {
    input %data: f32[2, 600, 600]
    input %updates: f32[2, 600, 600]
    const %shape: i64[3] = {2, 600, 600}
    const %axis: i64[1] = {3}
    const %batch: i64)",
                                                 batch, R"( = {0, 1}
    const %rows: i64)",
                                                 rows, " = {", Counted(600), R"(}
    const %columns: i64)",
                                                 columns, " = {", column_values, R"(}
    %b: ? = Expand(%batch, %shape)
    %r: ? = Expand(%rows, %shape)
    %c: ? = Expand(%columns, %shape)
    %b1: ? = Unsqueeze(%b, %axis)
    %r1: ? = Unsqueeze(%r, %axis)
    %c1: ? = Unsqueeze(%c, %axis)
    %at: ? = )",
                                                 concat, R"(
    %all: ? = ScatterND(%data, %at, %updates)
    %y: ? = Relu(%all)
    output %y
  })"));
  }
};

const std::string& Written() {
  static const std::string* const text = new std::string(RunPass(*Canonicalize(), R"(graph {
    input %data: f32[2, 600, 600]
    input %updates: f32[2, 600, 600]
    %y: ? = Relu(%updates)
    output %y
  })"));
  return *text;
}

TEST(ScatterRulesTest, AGridOfRowsAndColumnsIsFollowedThroughItsExpands) {
  EXPECT_EQ(Grid{}.Result(), Written());
  EXPECT_EQ(Grid{.rows = "[1, 600, 1]"}.Result(), Written());
  std::vector<std::string> rows(600, Counted(600));
  EXPECT_EQ((Grid{.columns = "[600, 600]", .column_values = absl::StrJoin(rows, ", ")}.Result()),
            Written());
}

TEST(ScatterRulesTest, AGridThatDoesNotNameEveryPlaceInOrderStays) {
  const auto stays = [](const Grid& grid) { EXPECT_THAT(grid.Result(), HasSubstr("ScatterND")); };
  stays({.column_values = Counted(600, 1)});
  // Rows and columns the other way round, by their Expands and by the order of the Concat.
  stays({.rows = "[600]", .columns = "[600, 1]"});
  stays({.concat = "Concat(%b1, %c1, %r1) {axis = -1}"});
  // One that counts the batch along the columns, and one that copies within the counted indices.
  stays({.batch = "[2, 1, 1]", .concat = "Concat(%r1, %b1, %c1) {axis = -1}"});
  stays({.columns = "[600, 1]"});
}

// Places of 200000 rows that an Expand makes of 100000: 0, 0, 1, 1 and so on, or all of them twice.
TEST(ScatterRulesTest, CopiesWithinWhatIsCountedAreSeen) {
  const auto text = [](absl::string_view from, absl::string_view to) {
    return absl::StrCat(R"(graph {
    input %data: f32[200000, 2]
    input %updates: f32[200000, 2]
    const %shape: i64[3] = )",
                        to, R"(
    const %column: i64[2] = {200000, 1}
    const %half: i64)",
                        from, " = {", Counted(100000), R"(}
    %pairs: ? = Expand(%half, %shape)
    %at: ? = Reshape(%pairs, %column)
    %all: ? = ScatterND(%data, %at, %updates)
    %y: ? = Relu(%all)
    output %y
  })");
  };
  EXPECT_THAT(RunPass(*Canonicalize(), text("[100000, 1, 1]", "{100000, 2, 1}")),
              HasSubstr("ScatterND"));
  EXPECT_THAT(RunPass(*Canonicalize(), text("[1, 100000, 1]", "{2, 100000, 1}")),
              HasSubstr("ScatterND"));
}

}  // namespace
}  // namespace reprise
