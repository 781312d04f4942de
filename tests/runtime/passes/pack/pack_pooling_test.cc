// Packing of nodes that make one row a request.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/passes/testing/packing_harness.h"

namespace reprise {
namespace {

TEST(PackPoolingTest, FirstTokenByIndexAndByPiece) {
  ExpectPacks(absl::StrCat(kX, R"(
    const %zero: i64[] = {0}
    param %w: f32[8, 40] = p0
    %first: ? = Gather(%x, %zero) {axis = 1}
    %y: ? = MatMul(%first, %w)
    output %y)"));
  ExpectPacks(absl::StrCat(kX, R"(
    const %zero: i64[1] = {0}
    const %one: i64[1] = {1}
    %y: ? = Slice(%x, %zero, %one, %one)
    %z: ? = Squeeze(%y, %one)
    output %z
    output %x)"));
}

TEST(PackPoolingTest, MaskedMeanAndNormOfRows) {
  ExpectPacks(absl::StrCat(kX, kMask, R"(
    const %last: i64[1] = {-1}
    const %second: i64[1] = {1}
    const %least: f32[] = {1e-9}
    %m: ? = Cast(%mask) {to = 1}
    %wide: ? = Unsqueeze(%m, %last)
    %kept: ? = Mul(%x, %wide)
    %sum: ? = ReduceSum(%kept, %second) {keepdims = 0}
    %count: ? = ReduceSum(%wide, %second) {keepdims = 0}
    %least_count: ? = Max(%count, %least)
    %mean: ? = Div(%sum, %least_count)
    %norm: ? = ReduceL2(%mean, %last) {keepdims = 1}
    %least_norm: ? = Max(%norm, %least)
    %y: ? = Div(%mean, %least_norm)
    output %y)"));
}

TEST(PackPoolingTest, ReductionsOverTokensAndWhatIsSpreadBack) {
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"}) {
    ExpectPacks(absl::StrCat(kX, "const %second: i64[1] = {1}\n%r: ? = ", op,
                             "(%x, %second) {keepdims = 1}\n%y: ? = Sub(%x, %r)\noutput %y"));
  }
}

TEST(PackPoolingTest, PoolingByAProductWithTheMask) {
  ExpectPacks(absl::StrCat(kX, kMask, R"(
    const %second: i64[1] = {1}
    %m: ? = Cast(%mask) {to = 1}
    %row: ? = Unsqueeze(%m, %second)
    %sum: ? = MatMul(%row, %x)
    %y: ? = Squeeze(%sum, %second)
    output %y)"));
}

// The rows of a batch counted as a shape says, next to an index in each of them.
constexpr absl::string_view kByRowAndPlace = R"(
    const %zero0: i64[] = {0}
    const %one0: i64[] = {1}
    const %last1: i64[1] = {-1}
    %shape: ? = Shape(%x) {start = 0, end = 1}
    %rows0: ? = Squeeze(%shape)
    %rows: ? = Range(%zero0, %rows0, %one0)
    %row: ? = Unsqueeze(%rows, %last1)
    %column: ? = Unsqueeze(%place, %last1)
    %at: ? = Concat(%row, %column) {axis = -1}
    %y: ? = GatherND(%x, %at)
    output %y)";

TEST(PackPoolingTest, TheLastTokenThatTheMaskCounts) {
  // A mask of zeros counts from the end of its own row.
  ExpectPacks(absl::StrCat(kX, kMask, R"(
    const %second: i64[1] = {1}
    const %back: i64[] = {1}
    const %two: i64[] = {2}
    %seen: ? = Greater(%mask, %two)
    %ones: ? = Cast(%seen) {to = 7}
    %counted: ? = ReduceSum(%ones, %second) {keepdims = 0}
    %place: ? = Sub(%counted, %back))",
                           kByRowAndPlace));
}

TEST(PackPoolingTest, TheTokenWithTheLargestId) {
  for (const char* arg : {"ArgMax(%ids) {axis = -1, keepdims = 0}",
                          "ArgMax(%ids) {axis = 1, keepdims = 0, select_last_index = 1}",
                          "ArgMin(%ids) {axis = 1, keepdims = 0}"}) {
    ExpectPacks(absl::StrCat(kX, kIds, "%place: ? = ", arg, kByRowAndPlace));
  }
  ExpectPacks(absl::StrCat(kX, "%y: ? = ArgMax(%x) {axis = 1}\noutput %y"));
  ExpectPacks(absl::StrCat(kX, "%y: ? = ArgMax(%x) {axis = 2}\noutput %y"));
}

TEST(PackPoolingTest, TheLastTokenThatIsNoPadding) {
  ExpectPacks(absl::StrCat(kX, kIds, kLength, R"(
    const %pad: i64[] = {0}
    const %zero00: i64[] = {0}
    const %last1: i64[1] = {-1}
    %equal: ? = Equal(%ids, %pad)
    %other: ? = Not(%equal)
    %kept: ? = Cast(%other) {to = 6}
    %positions: ? = Range(%zero00, %len0, %one0)
    %numbers: ? = Cast(%positions) {to = 6}
    %placed: ? = Mul(%numbers, %kept)
    %found: ? = ArgMax(%placed) {axis = -1, keepdims = 0}
    %shape: ? = Shape(%x) {start = 0, end = 1}
    %rows0: ? = Squeeze(%shape)
    %rows: ? = Range(%zero00, %rows0, %one0)
    %row: ? = Unsqueeze(%rows, %last1)
    %column: ? = Unsqueeze(%found, %last1)
    %at: ? = Concat(%row, %column) {axis = -1}
    %y: ? = GatherND(%x, %at)
    output %y)"));
}

TEST(PackPoolingTest, TokensGatheredByElementsAsWholePieces) {
  ExpectPacks(absl::StrCat(kX, kMask, R"(
    const %second: i64[1] = {1}
    const %one: i64[] = {1}
    const %last: i64[1] = {2}
    const %wide: i64[3] = {1, 1, 8}
    const %two: i64[] = {2}
    %seen: ? = Greater(%mask, %two)
    %ones: ? = Cast(%seen) {to = 7}
    %counted: ? = ReduceSum(%ones, %second) {keepdims = 1}
    %place: ? = Sub(%counted, %one)
    %places: ? = Unsqueeze(%place, %last)
    %all: ? = Expand(%places, %wide)
    %token: ? = GatherElements(%x, %all) {axis = 1}
    %y: ? = Squeeze(%token, %second)
    output %y)"));
}

}  // namespace
}  // namespace reprise
