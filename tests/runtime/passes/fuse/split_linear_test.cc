#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Returns a product of 96 columns, and its readers.
std::string Product(absl::string_view readers) {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 8]
    param %w: f32[8, 96] = p0
    param %b: f32[96] = p1
    const %zero: i64[1] = {0}
    const %third: i64[1] = {32}
    const %half: i64[1] = {48}
    const %end: i64[1] = {9223372036854775807}
    const %last: i64[1] = {-1}
    const %two: i64[1] = {2}
    %y: ? = reprise.Linear(%x, %w, %b) {activation = "none"}
    )",
                      readers, "\n}");
}

constexpr absl::string_view kGated = R"(%g: ? = Slice(%y, %zero, %half, %last)
    %v: ? = Slice(%y, %half, %end, %two)
    %a: ? = Gelu(%g) {approximate = "none"}
    %m: ? = Mul(%a, %v)
    output %m)";

TEST(SplitLinearTest, PiecesAreProductsOfTheirOwn) {
  ExpectRewrite(*SplitLinear(), Product(kGated), R"(graph {
    input %x: f32[2, 3, 8]
    param %wg: f32[8, 48] = Slice(p0, i64[1]{0}, i64[1]{48}, i64[1]{1})
    param %bg: f32[48] = Slice(p1, i64[1]{0}, i64[1]{48}, i64[1]{0})
    param %wv: f32[8, 48] = Slice(p0, i64[1]{48}, i64[1]{96}, i64[1]{1})
    param %bv: f32[48] = Slice(p1, i64[1]{48}, i64[1]{96}, i64[1]{0})
    %g: ? = reprise.Linear(%x, %wg, %bg) {activation = "none"}
    %a: ? = Gelu(%g) {approximate = "none"}
    %v: ? = reprise.Linear(%x, %wv, %bv) {activation = "none"}
    %m: ? = Mul(%a, %v)
    output %m
  })");
}

TEST(SplitLinearTest, ActivationsJoinThePieces) {
  const std::string text = Product(kGated);
  ExpectSameAnswersAfterCapture(text);
  const Graph captured = Captured(text);
  EXPECT_EQ(CountOps(captured, "Slice") + CountOps(captured, "Gelu"), 0);
  EXPECT_EQ(CountOps(captured, "reprise.Linear"), 2);
}

TEST(SplitLinearTest, SplitAndSomeOfTheColumns) {
  for (const char* readers :
       {"%a: ?, %c: ?, %d: ? = Split(%y) {axis = -1, num_outputs = 3}\n"
        "output %a\noutput %c\noutput %d",
        "%a: ? = Slice(%y, %third, %half, %last)\n%c: ? = Slice(%y, %half, %end, %last)\n"
        "output %c",
        "%a: ? = Slice(%y, %third, %end, %last)\noutput %a"}) {
    ExpectSameAnswers(*SplitLinear(), Product(readers));
    const std::string split = RunPass(*SplitLinear(), Product(readers));
    EXPECT_EQ(split.find("f32[8, 96]"), std::string::npos) << split;
  }
}

TEST(SplitLinearTest, WhatIsReadWholeOrTwiceStays) {
  for (const char* readers :
       {// Most of it twice; all of it as well; rows; every other column; narrow pieces.
        "%a: ? = Slice(%y, %zero, %half, %last)\n%c: ? = Slice(%y, %third, %end, %last)\n"
        "output %a\noutput %c",
        "%a: ? = Slice(%y, %zero, %half, %last)\n%c: ? = Relu(%y)\noutput %a\noutput %c",
        "%a: ? = Slice(%y, %zero, %half, %last)\noutput %a\noutput %y",
        "const %one: i64[1] = {1}\n%a: ? = Slice(%y, %zero, %two, %one)\noutput %a",
        "%a: ? = Slice(%y, %zero, %end, %last, %two)\noutput %a",
        "%a: ?, %c: ?, %d: ?, %e: ? = Split(%y) {axis = -1, num_outputs = 4}\n"
        "output %a\noutput %c\noutput %d\noutput %e"}) {
    ExpectUnchanged(*SplitLinear(), Product(readers));
  }
}

}  // namespace
}  // namespace reprise
