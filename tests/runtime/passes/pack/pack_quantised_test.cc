// Packing of nodes that quantise while they run: every request by its own range.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/passes/testing/packing_harness.h"

namespace reprise {
namespace {

constexpr absl::string_view kQuantisedProduct = R"(
    param %w: i8[8, 5] = p0
    const %wz: i8[] = {0}
    const %ws: f32[] = {0.05}
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%t)
    %sum: ? = MatMulInteger(%q, %w, %qz, %wz)
    %sums: ? = Cast(%sum) {to = 1}
    %scale: ? = Mul(%qs, %ws)
    %y: ? = Mul(%sums, %scale)
    output %y)";

// Rows next to a request, or after the last one, have no part in its range; its own rows have.
TEST(PackQuantisedTest, RequestsAreQuantisedByTheirOwnRange) {
  ExpectPacks(absl::StrCat(kX, "%t: ? = Exp(%x)", kQuantisedProduct));
  // One vector a row, as after pooling.
  ExpectPacks(absl::StrCat(kX, R"(
    const %tokens: i64[1] = {1}
    %t: ? = ReduceMean(%x, %tokens) {keepdims = 0})",
                           kQuantisedProduct));
  // Rows and tokens in one dim.
  ExpectPacks(absl::StrCat(kX, R"(
    const %flat: i64[2] = {-1, 8}
    %x2: ? = Reshape(%x, %flat)
    %shape: ? = Shape(%x)
    const %five: i64[1] = {5}
    const %two1: i64[1] = {2}
    const %from: i64[1] = {0}
    %leads: ? = Slice(%shape, %from, %two1)
    %back: ? = Concat(%leads, %five) {axis = 0}
    param %w: i8[8, 5] = p0
    const %wz: i8[] = {0}
    const %ws: f32[] = {0.05}
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%x2)
    %sum: ? = MatMulInteger(%q, %w, %qz, %wz)
    %sums: ? = Cast(%sum) {to = 1}
    %scale: ? = Mul(%qs, %ws)
    %scaled: ? = Mul(%sums, %scale)
    %y: ? = Reshape(%scaled, %back)
    output %y)"));
}

TEST(PackQuantisedTest, WhatIsQuantisedBeyondTokensAndRowsRefuses) {
  // Positions of a row in the last dim.
  const auto turned = Pack(absl::StrCat(kX, R"(
    %t: ? = Transpose(%x) {perm = [0, 2, 1]}
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%t)
    %f: ? = Cast(%q) {to = 1}
    %g: ? = Mul(%f, %qs)
    %y: ? = Transpose(%g) {perm = [0, 2, 1]}
    output %y)"));
  EXPECT_TRUE(absl::IsUnimplemented(turned.status())) << turned.status();
  // A scale that meets a value with other dims than its own tensor.
  const auto elsewhere = Pack(absl::StrCat(kX, kMask, R"(
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%x)
    %m: ? = Cast(%mask) {to = 1}
    %y: ? = Mul(%m, %qs)
    output %y)"));
  EXPECT_FALSE(elsewhere.ok());
}

TEST(PackQuantisedTest, StepsOfIntegersStayWithTheirTokens) {
  ExpectPacks(absl::StrCat(kX, R"(
    const %s: f32[] = {0.1}
    const %z: i8[] = {3}
    param %each: f32[8] = p0
    %q: ? = QuantizeLinear(%x, %s, %z)
    %d: ? = DequantizeLinear(%q, %s, %z)
    %size: ? = Abs(%each)
    %e: ? = DequantizeLinear(%q, %size) {axis = 2}
    %y: ? = Add(%d, %e)
    output %y)"));
}

}  // namespace
}  // namespace reprise
