// Heads that are turned by their position, in the forms that exporters write.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// The differences between exporters: how heads come about, and how their halves are turned.
struct RotaryForm {
  std::string x = R"(
    input %tokens: f32[2, 3, 8]
    const %heads: i64[4] = {2, 3, 2, 4}
    %x4: ? = Reshape(%tokens, %heads)
    %x: ? = Transpose(%x4) {perm = [0, 2, 1, 3]})";
  std::string tables = R"(
    param %cosine: f32[1, 1, 3, 4] = p0
    param %sine: f32[1, 1, 3, 4] = p1)";
  std::string turned = R"(
    %low: ? = Slice(%x, %zero, %two, %last)
    %high: ? = Slice(%x, %two, %end, %last)
    %minus: ? = Neg(%high)
    %turned: ? = Concat(%minus, %low) {axis = -1})";
  std::string sum = R"(
    %a: ? = Mul(%x, %cosine)
    %b: ? = Mul(%turned, %sine)
    %y: ? = Add(%a, %b)
    output %y)";
};

std::string RotaryGraph(const RotaryForm& form) {
  return absl::StrCat(R"(graph {
    const %zero: i64[1] = {0}
    const %two: i64[1] = {2}
    const %last: i64[1] = {-1}
    const %third: i64[1] = {3}
    const %end: i64[1] = {9223372036854775807})",
                      form.x, form.tables, form.turned, form.sum, "\n}");
}

void ExpectRotary(const RotaryForm& form, absl::string_view ops) {
  const std::string text = RotaryGraph(form);
  SCOPED_TRACE(text);
  ExpectSameAnswers(*FuseRotary(), text);
  EXPECT_EQ(OpsOf(Captured(text)), ops);
}

void ExpectNoRotary(const RotaryForm& form) {
  SCOPED_TRACE(RotaryGraph(form));
  ExpectUnchanged(*FuseRotary(), RotaryGraph(form));
}

TEST(FuseRotaryTest, TokensAreTurnedBeforeTheirHeadsAreMovedApart) {
  ExpectRotary({}, "Reshape reprise.Rotary Transpose");
}

TEST(FuseRotaryTest, HalvesBySplitAndByAProductWithMinusOne) {
  ExpectRotary({.turned = R"(
    const %minus_one: f32[] = {-1}
    %low: ?, %high: ? = Split(%x) {axis = 3, num_outputs = 2}
    %minus: ? = Mul(%high, %minus_one)
    %turned: ? = Concat(%minus, %low) {axis = 3})"},
               "Reshape reprise.Rotary Transpose");
}

TEST(FuseRotaryTest, OperandsInAnyOrder) {
  ExpectRotary({.sum = R"(
    %a: ? = Mul(%cosine, %x)
    %b: ? = Mul(%sine, %turned)
    %y: ? = Add(%b, %a)
    output %y)"},
               "Reshape reprise.Rotary Transpose");
}

TEST(FuseRotaryTest, HeadsThatLieTogetherAreTurnedWhereTheyLie) {
  ExpectRotary({.x = "\n input %x: f32[2, 3, 2, 4]", .tables = R"(
    param %cosine: f32[3, 1, 4] = p0
    param %sine: f32[3, 1, 4] = p1)"},
               "reprise.Rotary");
  ExpectRotary({.x = "\n input %x: f32[2, 6, 3, 4]", .tables = R"(
    input %cosine: f32[2, 1, 3, 4]
    input %sine: f32[2, 1, 3, 4])"},
               "reprise.Rotary");
}

TEST(FuseRotaryTest, HeadsOutOfOneProjectionOfAllAreCutOutFirst) {
  ExpectRotary({.x = R"(
    input %tokens: f32[2, 3, 24]
    const %heads: i64[5] = {2, 3, 3, 2, 4}
    const %first: i64[] = {1}
    %x5: ? = Reshape(%tokens, %heads)
    %xt: ? = Transpose(%x5) {perm = [0, 3, 2, 1, 4]}
    %x: ? = Gather(%xt, %first) {axis = 2})"},
               "Slice Reshape reprise.Rotary Transpose");
}

TEST(FuseRotaryTest, ATableForEachHeadAndPositionStaysWithTheHeads) {
  ExpectRotary({.tables = R"(
    param %cosine: f32[1, 2, 3, 4] = p0
    param %sine: f32[1, 2, 3, 4] = p1)"},
               "Reshape Transpose reprise.Rotary");
}

TEST(FuseRotaryTest, WhatIsNearlyThePatternStays) {
  // The halves in the other order, the wrong one negated, unequal pieces, another dim.
  ExpectNoRotary({.turned = R"(
    %low: ? = Slice(%x, %zero, %two, %last)
    %high: ? = Slice(%x, %two, %end, %last)
    %minus: ? = Neg(%low)
    %turned: ? = Concat(%high, %minus) {axis = -1})"});
  ExpectNoRotary({.turned = R"(
    %low: ? = Slice(%x, %zero, %third, %last)
    %high: ? = Slice(%x, %third, %end, %last)
    %minus: ? = Neg(%high)
    %turned: ? = Concat(%minus, %low) {axis = -1})"});
  ExpectNoRotary({.turned = R"(
    const %one: i64[1] = {1}
    %low: ? = Slice(%x, %zero, %two, %last, %one)
    %high: ? = Slice(%x, %one, %third, %last, %one)
    %minus: ? = Neg(%high)
    %turned: ? = Concat(%minus, %low) {axis = -1})"});
  ExpectNoRotary({.turned = R"(
    const %head: i64[1] = {1}
    const %one: i64[1] = {1}
    %low: ? = Slice(%x, %zero, %one, %head)
    %high: ? = Slice(%x, %one, %end, %head)
    %minus: ? = Neg(%high)
    %turned: ? = Concat(%minus, %low) {axis = 1})"});
  // The sum takes another value.
  ExpectNoRotary({.sum = R"(
    %other: ? = Abs(%x)
    %a: ? = Mul(%other, %cosine)
    %b: ? = Mul(%turned, %sine)
    %y: ? = Add(%a, %b)
    output %y)"});
  // Tables that make the result larger, or have one factor for all.
  ExpectNoRotary({.x = "\n input %x: f32[1, 2, 3, 4]", .tables = R"(
    param %cosine: f32[2, 1, 3, 4] = p0
    param %sine: f32[2, 1, 3, 4] = p1)"});
  ExpectNoRotary({.tables = R"(
    param %cosine: f32[3, 1] = p0
    param %sine: f32[3, 1] = p1)"});
}

}  // namespace
}  // namespace reprise
