// Packed against unpadded: every segment gets the answer that it gets alone, whatever lies next to
// it.
#include "runtime/passes/pack/pack_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "tests/runtime/passes/testing/packing_harness.h"

namespace reprise {
namespace {

using testing::HasSubstr;

TEST(PackTokensTest, TokenWiseOpsCarryOver) {
  ExpectPacks(absl::StrCat(kX, R"(
    param %w: f32[8, 40] = p0
    param %v: f32[40, 8] = p1
    const %g: f32[8] = {1, 2, 3, 4, 5, 6, 7, 8}
    %a: ? = MatMul(%x, %w)
    %b: ? = Gelu(%a)
    %c: ? = MatMul(%b, %v)
    %d: ? = Add(%c, %x)
    %y: ? = LayerNormalization(%d, %g) {axis = -1}
    output %y)"));
}

TEST(PackTokensTest, WhatLastDimsHoldIsOfOneToken) {
  ExpectPacks(absl::StrCat(kX, R"(
    const %matrices: i64[5] = {0, 0, 2, 2, 2}
    %m: ? = Reshape(%x, %matrices)
    %y: ? = Det(%m)
    output %y)"));
}

std::string Attention(absl::string_view masks, absl::string_view scores) {
  return absl::StrCat(kX, kMask, kLength, R"(
    const %heads: i64[4] = {0, 0, 2, 4}
    const %tokens: i64[3] = {0, 0, 8}
    const %axes: i64[2] = {1, 2}
    const %unit: f32[] = {1}
    const %low: f32[] = {-10000}
    const %lowest: f32[] = {-3.4028235e+38}
    const %zero: f32[] = {0}
    const %zero_int: i64[] = {0}
    %m: ? = Cast(%mask) {to = 1}
    %m4: ? = Unsqueeze(%m, %axes)
    %off: ? = Sub(%unit, %m4)
    %added: ? = Mul(%off, %low))",
                      masks, R"(
    %q4: ? = Reshape(%x, %heads)
    %q: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %k: ? = Transpose(%q4) {perm = [0, 2, 3, 1]}
    %s: ? = MatMul(%q, %k))",
                      scores, R"(
    %p: ? = Softmax(%masked) {axis = -1}
    %o: ? = MatMul(%p, %q)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens)
    output %y)");
}

TEST(PackTokensTest, HeadsAreTurnedByThePositionInTheirSegment) {
  for (int64_t rows : {kLongest, kLongest + 4}) {
    ExpectPacks(absl::StrCat(kX, kLength, "param %c: f32[", rows, ", 4] = p0\nparam %d: f32[", rows,
                             R"(, 4] = p1
      const %heads: i64[4] = {0, 0, 2, 4}
      const %tokens: i64[3] = {0, 0, 8}
      const %two1: i64[1] = {2}
      const %four1: i64[1] = {4}
      const %last1: i64[1] = {-1}
      const %axes: i64[2] = {0, 1}
      %c0: ? = Slice(%c, %zero1, %len, %zero1)
      %d0: ? = Slice(%d, %zero1, %len, %zero1)
      %cosine: ? = Unsqueeze(%c0, %axes)
      %sine: ? = Unsqueeze(%d0, %axes)
      %x4: ? = Reshape(%x, %heads)
      %q0: ? = Transpose(%x4) {perm = [0, 2, 1, 3]}
      %low: ? = Slice(%q0, %zero1, %two1, %last1)
      %high: ? = Slice(%q0, %two1, %four1, %last1)
      %minus: ? = Neg(%high)
      %turned: ? = Concat(%minus, %low) {axis = -1}
      %q1: ? = Mul(%q0, %cosine)
      %q2: ? = Mul(%turned, %sine)
      %q: ? = Add(%q1, %q2)
      %k: ? = Transpose(%q) {perm = [0, 1, 3, 2]}
      %s: ? = MatMul(%q, %k)
      %p: ? = Softmax(%s) {axis = -1}
      %o: ? = MatMul(%p, %q0)
      %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
      %y: ? = Reshape(%ot, %tokens)
      output %y)"));
  }
}

TEST(PackTokensTest, AttentionStaysWithinItsSegment) {
  ExpectPacks(Attention("", "\n%masked: ? = Identity(%s)"));
  ExpectPacks(Attention("", "\n%masked: ? = Add(%s, %added)"));
}

TEST(PackTokensTest, ChosenMasksAreOneATokenWhateverIsLeft) {
  ExpectPacks(Attention(R"(
    %keep: ? = Cast(%m4) {to = 9}
    %choice: ? = Where(%keep, %zero, %lowest))",
                        "\n%masked: ? = Add(%s, %choice)"));
}

TEST(PackTokensTest, ACausalTableIsCutForEverySegment) {
  ExpectPacks(Attention(R"(
    %square: ? = Concat(%len, %len) {axis = 0}
    %full: ? = Expand(%lowest, %square)
    %causal: ? = Trilu(%full, %one0) {upper = 1}
    %both: ? = Add(%causal, %added))",
                        "\n%masked: ? = Add(%s, %both)"));
}

// `window`, bool [length, length]: keys at most two away.
constexpr char kWindow[] = R"(
    const %reach: i64[] = {2}
    %row: ? = Range(%zero_int, %len0, %one0)
    %r: ? = Unsqueeze(%row, %zero1)
    %c: ? = Unsqueeze(%row, %one1)
    %d: ? = Sub(%r, %c)
    %distance: ? = Abs(%d)
    %window: ? = LessOrEqual(%distance, %reach))";

TEST(PackTokensTest, KeysThatAreSeenAndInTheWindowAreChosen) {
  // The dim of heads is missing, as in masks of rows.
  ExpectPacks(Attention(absl::StrCat(kWindow, R"(
    const %never: f32[] = {-inf}
    %keep: ? = Cast(%m4) {to = 9}
    %keep3: ? = Squeeze(%keep, %one1)
    %seen: ? = And(%window, %keep3)
    %chosen: ? = Where(%seen, %zero, %never)
    %both: ? = Unsqueeze(%chosen, %one1))"),
                        "\n%masked: ? = Add(%s, %both)"));
}

// Few keys of a row count, and of some rows none: `counts`, bool [batch, 1, 1, length].
constexpr char kFewCount[] = R"(
    %few: ? = Equal(%mask, %zero_int)
    %counts: ? = Unsqueeze(%few, %axes)
    %counted: ? = Cast(%counts) {to = 1}
    %left_out: ? = Sub(%unit, %counted)
    %hidden: ? = Cast(%left_out) {to = 9}
    %filled: ? = Where(%hidden, %lowest, %left_out)
    const %lower: f32[] = {-1e+30})";
constexpr char kOutside[] = "\n%outside: ? = Not(%window)";
constexpr char kCausal[] = R"(
    %square: ? = Concat(%len, %len) {axis = 0}
    %full: ? = Expand(%lowest, %square)
    %causal: ? = Trilu(%full, %one0) {upper = 1})";

std::string JoinedMasks(absl::string_view masks) {
  return Attention(absl::StrCat(kWindow, kOutside, kCausal, kFewCount, masks),
                   "\n%masked: ? = Add(%s, %both)");
}

void ExpectPacksMasks(absl::string_view masks) { ExpectPacks(JoinedMasks(masks)); }

void ExpectHidesTwice(absl::string_view masks) {
  EXPECT_THAT(Pack(JoinedMasks(masks)).status().message(), HasSubstr("hide a key more deeply"));
}

// It attends to all of them alike, those out of its reach as well, however a model joins masks.
TEST(PackTokensTest, AQueryThatSeesNoKeyIsAnsweredAsAlone) {
  ExpectPacksMasks("\n%both: ? = Where(%outside, %lowest, %filled)");
  ExpectPacksMasks("\n%both: ? = Where(%hidden, %lowest, %causal)");
  ExpectPacksMasks("\n%both: ? = Where(%outside, %lower, %counted)");
  ExpectPacksMasks("\n%both: ? = Add(%causal, %filled)");
  for (const char* fill : {"%lowest", "%lower", "%never"}) {
    ExpectPacksMasks(absl::StrCat(R"(
      const %never: f32[] = {-inf}
      %seen: ? = And(%window, %counts)
      %both: ? = Where(%seen, %zero, )",
                                  fill, ")"));
    ExpectPacksMasks(absl::StrCat(R"(
      const %never: f32[] = {-inf}
      %seen: ? = And(%counts, %window)
      %once: ? = Where(%seen, %zero, )",
                                  fill, ")\n%both: ? = Where(%outside, ", fill, ", %once)"));
  }
}

TEST(PackTokensTest, MasksThatScoresShowThroughHideAsInTheModel) {
  ExpectPacksMasks("\n%both: ? = Identity(%added)");
  ExpectPacksMasks("\n%both: ? = Identity(%filled)");
  ExpectPacksMasks(R"(
      %off_by: ? = Mul(%left_out, %low)
      %both: ? = Where(%outside, %lowest, %off_by))");
}

TEST(PackTokensTest, MasksThatHideTwiceSaySo) {
  // Numbers that may be lower than their replacement, or come from the client.
  ExpectHidesTwice("\n%both: ? = Where(%outside, %lower, %filled)");
  ExpectHidesTwice("\n%both: ? = Where(%outside, %lowest, %added)");
  // Rounded in another order.
  ExpectHidesTwice("\n%first: ? = Add(%causal, %filled)\n%both: ? = Add(%first, %causal)");
}

TEST(PackTokensTest, WhatEitherOfBothMayShowRefuses) {
  const auto packed = Pack(Attention(absl::StrCat(kWindow, R"(
    %keep: ? = Cast(%m4) {to = 9}
    %seen: ? = And(%window, %keep)
    %both: ? = Where(%seen, %lowest, %zero))"),
                                     "\n%masked: ? = Add(%s, %both)"));
  EXPECT_THAT(packed.status().message(), HasSubstr("in a way without a rule"));
}

TEST(PackTokensTest, ALearntBiasForPairsOfPositionsIsATable) {
  ExpectPacks(Attention(R"(
    param %learnt: f32[300, 2] = p0
    %row: ? = Range(%zero_int, %len0, %one0)
    %r: ? = Unsqueeze(%row, %zero1)
    %c: ? = Unsqueeze(%row, %one1)
    %d: ? = Sub(%r, %c)
    %distance: ? = Abs(%d)
    %found: ? = Gather(%learnt, %distance)
    %turned: ? = Transpose(%found) {perm = [2, 0, 1]}
    %bias: ? = Unsqueeze(%turned, %zero1)
    %both: ? = Add(%bias, %added))",
                        "\n%masked: ? = Add(%s, %both)"));
}

TEST(PackTokensTest, RowsFlattenedAroundAProduct) {
  ExpectPacks(absl::StrCat(kX, R"(
    param %w: f32[8, 40] = p0
    const %flat: i64[2] = {-1, 8}
    const %last: i64[1] = {40}
    const %two: i64[1] = {2}
    const %zero: i64[1] = {0}
    %f: ? = Reshape(%x, %flat)
    %g: ? = Gemm(%f, %w)
    %shape: ? = Shape(%x)
    %lead: ? = Slice(%shape, %zero, %two)
    %back: ? = Concat(%lead, %last) {axis = 0}
    %y: ? = Reshape(%g, %back)
    output %y)"));
}

TEST(PackTokensTest, AnInputOfOneRowARequestIsOneASegment) {
  ExpectPacks(absl::StrCat(kX, R"(
    input %bias: f32[batch, 1, 8]
    input %label: i64[batch, 1]
    param %table: f32[5, 64] = p0
    %y: ? = Add(%x, %bias)
    %z: ? = Gather(%table, %label)
    output %y
    output %z)"));
}

TEST(PackTokensTest, ThePackedTextIsWhatItShouldBe) {
  const absl::StatusOr<Graph> packed = Pack(absl::StrCat(kX, R"(
    param %w: f32[8, 40] = p0
    const %zero: i64[] = {0}
    const %end: i64[] = {-1}
    const %ends: i64[1] = {-1}
    const %all: i64[1] = {9223372036854775807}
    const %axis: i64[1] = {1}
    %a: ? = MatMul(%x, %w)
    %b: ? = Relu(%a)
    %first: ? = Gather(%b, %zero) {axis = 1}
    %last: ? = Gather(%b, %end) {axis = 1}
    %cut: ? = Slice(%b, %ends, %all, %axis)
    output %b
    output %first
    output %last
    output %cut)"));
  ASSERT_TRUE(packed.ok()) << packed.status();
  const Graph expected = Symbolic(R"(
    input %x: f32[tokens, 8]
    input %p: i64[tokens]
    input %s: i32["segments + 1"]
    param %w: f32[8, 40] = p0
    %b: ? = reprise.Linear(%x, %w) {activation = "relu"}
    const %shape: i64[3] = {-1, 1, 40}
    %first: ? = reprise.SegmentReduce(%b, %s) {reduction = "first"}
    %last: ? = reprise.SegmentReduce(%b, %s) {reduction = "last"}
    %cut: ? = Reshape(%last, %shape) {allowzero = 1}
    output %b
    output %first
    output %last
    output %cut)");
  EXPECT_EQ(Print(*packed, {.names = false}), Print(expected, {.names = false}));
}

}  // namespace
}  // namespace reprise
