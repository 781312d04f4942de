// Tables by position, packed: every request begins at its first position.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/passes/testing/packing_harness.h"

namespace reprise {
namespace {

TEST(PackPositionsTest, RowsOfATableAndPositionsAreLookedUp) {
  ExpectPacks(absl::StrCat(kIds, R"(
    param %words: f32[5, 64] = p0
    param %places: f32[20, 64] = p1
    const %all: i64[1, 20] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
    const %one0: i64[] = {1}
    const %zero1: i64[1] = {0}
    const %one1: i64[1] = {1}
    %s: ? = Shape(%ids)
    %n0: ? = Gather(%s, %one0)
    %n: ? = Unsqueeze(%n0, %zero1)
    %used: ? = Slice(%all, %zero1, %n, %one1)
    %w: ? = Gather(%words, %ids)
    %p: ? = Gather(%places, %used)
    %y: ? = Add(%w, %p)
    output %y)"));
}

TEST(PackPositionsTest, APieceOfATableByPositionIsLookedUp) {
  ExpectPacks(absl::StrCat(kX, kLength, R"(
    const %t: f32[20, 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
    %used: ? = Slice(%t, %zero1, %len, %zero1)
    %y: ? = Mul(%x, %used)
    output %y)"));
}

// Tables that are weights are cut in the recipe, or not at all where the longest segment needs all.
TEST(PackPositionsTest, APieceOfLearntPositionsIsLookedUp) {
  for (int64_t rows : {kLongest, kLongest + 1, kLongest + 8}) {
    ExpectPacks(absl::StrCat(kX, kLength, "param %t: f32[", rows, R"(, 8] = p0
      %used: ? = Slice(%t, %zero1, %len, %zero1)
      %wide: ? = Unsqueeze(%used, %zero1)
      %y: ? = Mul(%x, %wide)
      output %y)"));
  }
}

TEST(PackPositionsTest, APieceThatDoesNotBeginWithTheFirstPositionRefuses) {
  const auto packed = Pack(absl::StrCat(kX, kLength, R"(
    param %t: f32[20, 8] = p0
    const %minus: i64[1] = {-1}
    const %low: i64[1] = {-100}
    %used: ? = Slice(%t, %minus, %low, %zero1, %minus)
    %some: ? = Slice(%used, %zero1, %len, %zero1)
    %y: ? = Mul(%x, %some)
    output %y)"));
  // All of it backwards does not depend on the length; a piece of that is one of a table.
  EXPECT_TRUE(packed.ok()) << packed.status();
  const auto behind = Pack(absl::StrCat(kX, kLength, R"(
    param %t: f32[20, 8] = p0
    const %end: i64[1] = {20}
    %begin: ? = Sub(%end, %len)
    %used: ? = Slice(%t, %begin, %end, %zero1)
    %y: ? = Mul(%x, %used)
    output %y)"));
  EXPECT_FALSE(behind.ok());
}

// Positions that count the tokens which are no padding, as RoBERTa's exports have them.
TEST(PackPositionsTest, PositionsThatCountTokensBeginAnewInEverySegment) {
  ExpectPacks(absl::StrCat(kIds, R"(
    param %words: f32[5, 64] = p0
    param %places: f32[20, 64] = p1
    const %pad: i64[] = {1}
    const %axis: i64[] = {1}
    %is: ? = Equal(%ids, %pad)
    %not: ? = Not(%is)
    %count: ? = Cast(%not) {to = 7}
    %sum: ? = CumSum(%count, %axis)
    %place: ? = Mul(%sum, %count)
    %shifted: ? = Add(%place, %pad)
    %w: ? = Gather(%words, %ids)
    %p: ? = Gather(%places, %shifted)
    %y: ? = Add(%w, %p)
    output %y)"));
}

// Angles of positions that are counted, as exports of decoders make them: a product of depth 1 by
// frequencies that an Expand repeats for each row, then turned.
TEST(PackPositionsTest, AnglesOfCountedPositionsAreThoseOfTokens) {
  ExpectPacks(absl::StrCat(kX, kMask, R"(
    const %axis: i64[] = {1}
    const %one: i64[1] = {1}
    const %zero: i64[] = {0}
    const %lone: i64[1] = {0}
    const %rest: i64[2] = {4, 1}
    const %frequencies: f32[1, 4, 1] = {1.0, 0.5, 0.25, 0.125}
    %sum: ? = CumSum(%mask, %axis)
    %place: ? = Cast(%sum) {to = 1}
    %row: ? = Unsqueeze(%place, %one)
    %shape: ? = Shape(%x)
    %batch0: ? = Gather(%shape, %zero)
    %batch: ? = Unsqueeze(%batch0, %lone)
    %sizes: ? = Concat(%batch, %rest) {axis = 0}
    %f: ? = Expand(%frequencies, %sizes)
    %a: ? = MatMul(%f, %row)
    %angle: ? = Transpose(%a) {perm = [0, 2, 1]}
    %both: ? = Concat(%angle, %angle) {axis = -1}
    %wave: ? = Cos(%both)
    %y: ? = Mul(%x, %wave)
    output %y)"));
}

}  // namespace
}  // namespace reprise
