// What becomes one row a request, packed.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/passes/packing_harness.h"

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

}  // namespace
}  // namespace reprise
