#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/passes/pack/pack_passes.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Returns a layer of 4 tokens by 8, and the tokens of its result %y that `pick` takes.
std::string Layer(absl::string_view pick, absl::string_view mask = "f32[2, 1, 1, 4]") {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 4, 8]
    input %mask: )",
                      mask, R"(
    param %w: f32[8, 24] = Concat{axis = 1}(f32[8, 8] p0, f32[8, 8] p1, f32[8, 8] p2)
    param %b: f32[24] = p3
    param %wo: f32[8, 8] = p4
    param %g: f32[8] = p5
    %qkv: ? = reprise.Linear(%x, %w, %b) {activation = "none"}
    %a: ? = reprise.Attention(%qkv, _, _, %mask) {num_heads = 2, packed_qkv = 1, scale = 0.5}
    %o: ? = reprise.Linear(%a, %wo) {activation = "none"}
    %y: ? = reprise.AddLayerNorm(%o, %x, %g) {axis = -1, epsilon = 1e-05}
    )",
                      pick, "}");
}

constexpr absl::string_view kFirst = R"(const %i: i64[] = {0}
    %p: ? = Gather(%y, %i) {axis = 1}
    output %p
)";

TEST(HoistPicksTest, OfTheLastLayerKeysAndValuesAreLeft) {
  ExpectRewrite(*HoistPicks(), Layer(kFirst), R"(graph {
    input %x: f32[2, 4, 8]
    input %mask: f32[2, 1, 1, 4]
    param %wo: f32[8, 8] = p4
    param %g: f32[8] = p5
    param %wq: f32[8, 8] = p0
    param %bq: f32[8] = Slice(p3, i64[1]{0}, i64[1]{8}, i64[1]{0})
    const %first: i64[1] = {0}
    param %wk: f32[8, 8] = p1
    param %bk: f32[8] = Slice(p3, i64[1]{8}, i64[1]{16}, i64[1]{0})
    param %wv: f32[8, 8] = p2
    param %bv: f32[8] = Slice(p3, i64[1]{16}, i64[1]{24}, i64[1]{0})
    const %out: i64[2] = {2, 8}
    %px: ? = Gather(%x, %first) {axis = 1}
    %q: ? = reprise.Linear(%px, %wq, %bq) {activation = "none"}
    %k: ? = reprise.Linear(%x, %wk, %bk) {activation = "none"}
    %v: ? = reprise.Linear(%x, %wv, %bv) {activation = "none"}
    %a: ? = reprise.Attention(%q, %k, %v, %mask) {num_heads = 2, packed_qkv = 0, scale = 0.5}
    %o: ? = reprise.Linear(%a, %wo) {activation = "none"}
    %n: ? = reprise.AddLayerNorm(%o, %px, %g) {axis = -1, epsilon = 1e-05}
    %p: ? = Reshape(%n, %out) {allowzero = 1}
    output %p
  })");
}

TEST(HoistPicksTest, RowsOfTheMaskArePickedWithTheQueries) {
  for (const char* mask : {"f32[2, 1, 4, 4]", "f32[4, 4]", "bool[1, 2, 4, 4]", "f32[1, 4]"}) {
    for (const char* pick : {"const %i: i64[] = {-1}\n%p: ? = Gather(%y, %i) {axis = 1}\n",
                             "const %i: i64[2] = {2, 0}\n%p: ? = Gather(%y, %i) {axis = 1}\n",
                             "const %i: i64[1] = {-2}\nconst %e: i64[1] = {100}\n"
                             "const %d: i64[1] = {1}\n%p: ? = Slice(%y, %i, %e, %d)\n"}) {
      const std::string text = Layer(absl::StrCat(pick, "output %p\n"), mask);
      SCOPED_TRACE(text);
      ExpectSameAnswers(*HoistPicks(), text);
      const std::string rewritten = RunPass(*HoistPicks(), text);
      EXPECT_NE(rewritten.find("packed_qkv = 0"), std::string::npos) << rewritten;
    }
  }
}

TEST(HoistPicksTest, WhatOthersReadIsComputedWhole) {
  // All tokens are an output; most are picked; the sum reads all; two nodes pick most.
  ExpectUnchanged(*HoistPicks(), Layer(absl::StrCat(kFirst, "output %y\n")));
  ExpectUnchanged(*HoistPicks(), Layer("const %i: i64[3] = {0, 1, 3}\n"
                                       "%p: ? = Gather(%y, %i) {axis = 1}\noutput %p\n"));
  ExpectUnchanged(*HoistPicks(), Layer(absl::StrCat("const %d: i64[1] = {1}\n", kFirst,
                                                    "%s: ? = ReduceSum(%y, %d)\noutput %s\n")));
  ExpectUnchanged(*HoistPicks(), Layer("const %i: i64[] = {0}\nconst %j: i64[2] = {1, 2}\n"
                                       "%p: ? = Gather(%y, %i) {axis = 1}\n"
                                       "%r: ? = Gather(%y, %j) {axis = 1}\n"
                                       "output %p\noutput %r\n"));
}

TEST(HoistPicksTest, PicksOfOneValueAreOne) {
  const std::string text = Layer(R"(const %i: i64[] = {0}
    const %j: i64[1] = {-1}
    %p: ? = Gather(%y, %i) {axis = 1}
    %r: ? = Gather(%y, %j) {axis = 1}
    output %p
    output %r
)");
  ExpectSameAnswers(*HoistPicks(), text);
  const std::string rewritten = RunPass(*HoistPicks(), text);
  EXPECT_NE(rewritten.find("f32[2, 2, 8] = reprise.Attention"), std::string::npos) << rewritten;
}

TEST(HoistPicksTest, NodesBesideAttentionFollow) {
  for (const char* body :
       {"%y: ? = Softmax(%x) {axis = -1}\n", "%y: ? = Mul(%x, %row)\n", "%y: ? = Add(%t, %x)\n",
        "%y: ? = Where(%keep, %x, %x)\n", "%y: ? = LayerNormalization(%x, %g) {axis = -1}\n",
        "const %s: i64[4] = {2, 4, 2, 4}\n%z: ? = Reshape(%x, %s)\n%e: ? = Exp(%z)\n"
        "const %b: i64[3] = {2, 4, 8}\n%y: ? = Reshape(%e, %b)\n",
        "const %s: i64[4] = {2, 4, 2, 4}\n%z: ? = Reshape(%x, %s)\n"
        "%e: ? = reprise.Rotary(%z, %c, %c)\n"
        "const %b: i64[3] = {2, 4, 8}\n%y: ? = Reshape(%e, %b)\n",
        "%l: ?, %r: ? = Split(%x) {axis = -1, num_outputs = 2}\n%m: ? = Mul(%l, %r)\n"
        "const %s: i64[3] = {2, 4, 4}\n%y: ? = Reshape(%m, %s)\n",
        "const %s: i64[1] = {2}\nconst %e: i64[1] = {6}\n%z: ? = Exp(%x)\n"
        "%y: ? = Slice(%z, %s, %e, %s)\n"}) {
    const std::string text = absl::StrCat(R"(graph {
      input %x: f32[2, 4, 8]
      input %row: f32[2, 4, 1]
      input %t: f32[4, 8]
      input %c: f32[4, 1, 4]
      input %keep: bool[2, 4, 1]
      param %g: f32[8] = p0
      )",
                                          body, kFirst, "}");
    SCOPED_TRACE(body);
    ExpectSameAnswers(*HoistPicks(), text);
    EXPECT_NE(RunPass(*HoistPicks(), text), RunPass(*EliminateDead(), text));
  }
}

TEST(HoistPicksTest, HalvesThatAreTurnedMeet) {
  ExpectUnchanged(*HoistPicks(), R"(graph {
    input %x: f32[2, 4, 8]
    input %c: f32[4, 8]
    const %two: i64[2] = {0, 1}
    %e: ? = Exp(%x)
    %z: ? = reprise.Rotary(%e, %c, %c)
    const %s: i64[4] = {2, 4, 8, 1}
    %y: ? = Reshape(%z, %s)
    %p: ? = Gather(%y, %two) {axis = 2}
    output %p
  })");
}

// Values that one kind of pick replaces may be picked by another.
TEST(HoistPicksTest, PicksOfPicksAreLookedForAnew) {
  ExpectSameAnswers(*HoistPicks(), R"(graph {
    input %a: f32[1, 8, 4, 6]
    input %b: f32[1, 8, 4, 6]
    input %c: f32[1, 8, 4, 6]
    const %zero: i64[1] = {0}
    const %one: i64[1] = {1}
    const %two: i64[1] = {2}
    %ea: ? = Exp(%a)
    %ga: ? = Gather(%ea, %zero) {axis = 1}
    %eb: ? = Exp(%b)
    %sb: ? = Slice(%eb, %zero, %one, %two)
    %gb: ? = Gather(%sb, %zero) {axis = 1}
    %ec: ? = Exp(%c)
    %sc: ? = Slice(%ec, %zero, %one, %two)
    output %ga
    output %gb
    output %sc
  })");
}

TEST(HoistPicksTest, PositionsThatMeetStay) {
  for (const char* body :
       {"%y: ? = Softmax(%x) {axis = 1}\n", "%y: ? = LayerNormalization(%x, %g2) {axis = 1}\n",
        "%y: ? = MatMul(%m, %x)\n", "const %a: i64[] = {1}\n%y: ? = CumSum(%x, %a)\n",
        "const %s: i64[3] = {2, 8, 4}\n%z: ? = Reshape(%x, %s)\n"
        "%y: ? = Transpose(%z) {perm = [0, 2, 1]}\n"}) {
    SCOPED_TRACE(body);
    ExpectUnchanged(*HoistPicks(), absl::StrCat(R"(graph {
      input %x: f32[2, 4, 8]
      input %m: f32[2, 4, 4]
      param %g2: f32[4, 8] = p0
      )",
                                                body, kFirst, "}"));
  }
}

// Returns the same graph over packed tokens: three segments, one of them empty.
std::string Packed(absl::string_view pick, absl::string_view bias = "_") {
  return absl::StrCat(R"(graph {
    input %x: f32[9, 8]
    input %mask: f32[9]
    input %places: i64[3]
    const %reprise.positions: i64[9] = {0, 1, 2, 3, 0, 1, 2, 3, 4}
    const %s: i32[4] = {0, 4, 4, 9}
    param %table: f32[2, 6, 6] = p6
    param %w: f32[8, 24] = p0
    param %wo: f32[8, 8] = p4
    param %g: f32[8] = p5
    %qkv: ? = reprise.Linear(%x, %w) {activation = "none"}
    %a: ? = reprise.SegmentAttention(%qkv, _, _, %mask, )",
                      bias, R"(, %s) {longest = 6, num_heads = 2, packed_qkv = 1, scale = 0.5}
    %o: ? = reprise.Linear(%a, %wo) {activation = "gelu"}
    %y: ? = reprise.AddLayerNorm(%o, %x, %g) {axis = -1, epsilon = 1e-05}
    %p: ? = )",
                      pick, "\n output %p\n %used: ? = Neg(%reprise.positions)\n output %used\n}");
}

TEST(HoistPicksTest, PackedTokensArePickedInTheirSegments) {
  for (const char* pick : {"reprise.SegmentReduce(%y, %s) {reduction = \"first\"}",
                           "reprise.SegmentReduce(%y, %s) {reduction = \"last\"}",
                           "reprise.SegmentPick(%y, %places, %s)"}) {
    for (const char* bias : {"_", "%table"}) {
      const std::string text = Packed(pick, bias);
      SCOPED_TRACE(text);
      ExpectSameAnswers(*HoistPicks(), text);
      const std::string rewritten = RunPass(*HoistPicks(), text);
      EXPECT_NE(rewritten.find("f32[3, 8] = reprise.SegmentAttention"), std::string::npos)
          << rewritten;
    }
  }
  ExpectUnchanged(*HoistPicks(), Packed("reprise.SegmentReduce(%y, %s) {reduction = \"mean\"}"));
}

// Keys of every distance, and queries that have a mask of their own.
TEST(HoistPicksTest, PackedTokensThatAttendByDistanceArePicked) {
  for (const char* pick : {"reprise.SegmentReduce(%y, %s) {reduction = \"first\"}",
                           "reprise.SegmentReduce(%y, %s) {reduction = \"last\"}",
                           "reprise.SegmentPick(%y, %places, %s)"}) {
    for (const char* masks : {"%mask, %query_mask", "%mask, _", "_, _"}) {
      const std::string text = absl::StrCat(R"(graph {
        input %x: f32[9, 8]
        input %mask: f32[9]
        input %query_mask: f32[9]
        input %places: i64[3]
        const %reprise.positions: i64[9] = {0, 1, 2, 3, 0, 1, 2, 3, 4}
        const %s: i32[4] = {0, 4, 4, 9}
        param %table: f32[2, 4, 70] = p6
        const %by: i64[7] = {1, 5, 60, 3, 2, 69, 8}
        param %w: f32[8, 8] = p0
        param %wo: f32[8, 8] = p4
        param %g: f32[8] = p5
        %q: ? = reprise.Linear(%x, %w) {activation = "none"}
        %a: ? = reprise.RelativeAttention(%q, %x, %x, )",
                                            masks, R"(, %table, %by, %table, %by, %s) {longest = 6,
            lowest = -0.5, num_heads = 2, scale = 0.5}
        %o: ? = reprise.Linear(%a, %wo) {activation = "gelu"}
        %y: ? = reprise.AddLayerNorm(%o, %x, %g) {axis = -1, epsilon = 1e-05}
        %p: ? = )",
                                            pick, R"(
        output %p
        %used: ? = Neg(%reprise.positions)
        output %used
      })");
      SCOPED_TRACE(text);
      ExpectSameAnswers(*HoistPicks(), text);
      const std::string rewritten = RunPass(*HoistPicks(), text);
      EXPECT_NE(rewritten.find("f32[3, 8] = reprise.RelativeAttention"), std::string::npos)
          << rewritten;
    }
  }
}

}  // namespace
}  // namespace reprise
