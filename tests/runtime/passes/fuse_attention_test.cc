#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/graph/text.h"
#include "runtime/passes/passes.h"
#include "tests/runtime/passes/pass_test_util.h"

namespace reprise {
namespace {

// Two rows of three tokens, two heads of four.
constexpr absl::string_view kInputs = R"(
    input %q: f32[2, 3, 8]
    input %k: f32[2, 3, 8]
    input %v: f32[2, 3, 8]
    input %mask: f32[2, 1, 1, 3]
    input %keep: bool[2, 1, 1, 3]
    input %bias: f32[1, 2, 3, 3]
    const %heads: i64[4] = {2, 3, 2, 4}
    const %tokens: i64[3] = {2, 3, 8}
    const %folded: i64[3] = {4, 3, 4}
    const %folded_k: i64[3] = {-1, 3, 4}
    const %unfolded: i64[4] = {2, 2, 3, 4}
    const %unfolded_k: i64[4] = {2, 2, 4, 3}
    const %scores4: i64[4] = {2, 2, 3, 3}
    const %scores3: i64[3] = {4, 3, 3}
    const %scale: f32[] = {0.5}
    const %root_scale: f32[] = {0.70710677}
    const %two: f32[] = {2}
    const %zero: f32[] = {0}
    const %low: f32[] = {-3.4028235e+38}
    const %inf: f32[] = {-inf}
    const %not_low: f32[] = {-10000}
)";

std::string AttentionGraph(absl::string_view body) {
  return absl::StrCat("graph {", kInputs, body, "\n output %y\n}");
}

// The parts of the usual form; tests replace one.
constexpr absl::string_view kQ = R"(
    %q4: ? = Reshape(%q, %heads)
    %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]})";
constexpr absl::string_view kK = R"(
    %k4: ? = Reshape(%k, %heads)
    %kh: ? = Transpose(%k4) {perm = [0, 2, 3, 1]})";
constexpr absl::string_view kV = R"(
    %v4: ? = Reshape(%v, %heads)
    %vh: ? = Transpose(%v4) {perm = [0, 2, 1, 3]})";
constexpr absl::string_view kScores = R"(
    %s: ? = MatMul(%qh, %kh)
    %s1: ? = Mul(%s, %scale))";
constexpr absl::string_view kMask = "\n %s2: ? = Add(%s1, %mask)";
constexpr absl::string_view kSoftmax = "\n %p: ? = Softmax(%s2) {axis = -1}";
constexpr absl::string_view kResult = R"(
    %o: ? = MatMul(%p, %vh)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens))";

struct Parts {
  absl::string_view q = kQ, k = kK, v = kV, scores = kScores, mask = kMask, softmax = kSoftmax,
                    result = kResult;
};

std::string Make(const Parts& parts) {
  return AttentionGraph(absl::StrCat(parts.q, parts.k, parts.v, parts.scores, parts.mask,
                                     parts.softmax, parts.result));
}

std::string Fused(absl::string_view mask, absl::string_view attributes) {
  return absl::StrCat("graph {", kInputs, "\n %y: ? = reprise.Attention(%q, %k, %v", mask, ") {",
                      attributes, "}\n output %y\n}");
}

constexpr absl::string_view kPlain = "nan_to_zero = 0, num_heads = 2, packed_qkv = 0, scale = 0.5";

void ExpectFused(const Parts& parts, absl::string_view mask = ", %mask",
                 absl::string_view attributes = kPlain) {
  ExpectRewrite(*FuseAttention(), Make(parts), Fused(mask, attributes));
}

void ExpectNotFused(const Parts& parts) { ExpectUnchanged(*FuseAttention(), Make(parts)); }

TEST(FuseAttentionTest, TheUsualFormBecomesOneNode) { ExpectFused({}); }

TEST(FuseAttentionTest, WithoutMaskThereIsNoMaskOperand) {
  ExpectFused({.mask = "\n %s2: ? = Identity(%s1)", .softmax = "\n %p: ? = Softmax(%s1)"}, "");
}

TEST(FuseAttentionTest, TheKeyMayComeThroughThreeDims) {
  ExpectFused({.k = R"(
    %k4: ? = Reshape(%k, %heads)
    %kt: ? = Transpose(%k4) {perm = [0, 2, 1, 3]}
    %k3: ? = Reshape(%kt, %folded_k)
    %k3t: ? = Transpose(%k3) {perm = [0, 2, 1]}
    %kh: ? = Reshape(%k3t, %unfolded_k))"});
}

TEST(FuseAttentionTest, TheKeyMayBeTransposedTwice) {
  ExpectFused({.k = R"(
    %k4: ? = Reshape(%k, %heads)
    %kt: ? = Transpose(%k4) {perm = [0, 2, 1, 3]}
    %kh: ? = Transpose(%kt) {perm = [0, 1, 3, 2]})"});
}

TEST(FuseAttentionTest, TheProductMayTransposeTheKeyAndScale) {
  ExpectFused({.k = R"(
    %k4: ? = Reshape(%k, %heads)
    %kh: ? = Transpose(%k4) {perm = [0, 2, 1, 3]})",
               .scores = R"(
    %s1: ? = com.microsoft.FusedMatMul(%qh, %kh) {alpha = 0.5, transB = 1})"});
}

TEST(FuseAttentionTest, TheScaleMayBeADivision) {
  ExpectFused({.scores = R"(
    %s: ? = MatMul(%qh, %kh)
    %s1: ? = Div(%s, %two))"});
}

TEST(FuseAttentionTest, TheScaleMayBeOnTheQueryBeforeItsHeadsPart) {
  ExpectFused({.q = R"(
    %qs: ? = Mul(%scale, %q)
    %q4: ? = Reshape(%qs, %heads)
    %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]})",
               .scores = "\n %s1: ? = MatMul(%qh, %kh)"});
}

TEST(FuseAttentionTest, TheScaleMayBeOnQueryAndKey) {
  const Parts parts = {.q = R"(
    %q4: ? = Reshape(%q, %heads)
    %qt: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %qh: ? = Mul(%qt, %root_scale))",
                       .k = R"(
    %k4: ? = Reshape(%k, %heads)
    %kt: ? = Transpose(%k4) {perm = [0, 2, 3, 1]}
    %kh: ? = Mul(%root_scale, %kt))",
                       .scores = "\n %s1: ? = MatMul(%qh, %kh)"};
  ExpectSameAnswers(*FuseAttention(), Make(parts));
  const Graph graph = Captured(Make(parts));
  EXPECT_EQ(OpsOf(graph), "reprise.Attention");
  EXPECT_NEAR(graph.node(0).attributes.Float("scale", 0), 0.5, 1e-6);
}

TEST(FuseAttentionTest, BatchAndHeadsMayBeOneDim) {
  const Parts parts = {.q = R"(
    %q4: ? = Reshape(%q, %heads)
    %qt: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %qh: ? = Reshape(%qt, %folded))",
                       .k = R"(
    %k4: ? = Reshape(%k, %heads)
    %kt: ? = Transpose(%k4) {perm = [0, 2, 1, 3]}
    %k3: ? = Reshape(%kt, %folded)
    %kh: ? = Transpose(%k3) {perm = [0, 2, 1]})",
                       .v = R"(
    %v4: ? = Reshape(%v, %heads)
    %vt: ? = Transpose(%v4) {perm = [0, 2, 1, 3]}
    %vh: ? = Reshape(%vt, %folded))",
                       .scores = R"(
    %s: ? = MatMul(%qh, %kh)
    %s1: ? = Mul(%s, %scale))",
                       .mask = R"(
    %s14: ? = Reshape(%s1, %scores4)
    %sm: ? = Add(%s14, %mask)
    %s2: ? = Reshape(%sm, %scores3))",
                       .result = R"(
    %o: ? = MatMul(%p, %vh)
    %o4: ? = Reshape(%o, %unfolded)
    %ot: ? = Transpose(%o4) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens))"};
  ExpectFused(parts);
  Parts unmasked = parts;
  unmasked.mask = "";
  unmasked.softmax = "\n %p: ? = Softmax(%s1) {axis = 2}";
  ExpectFused(unmasked, "");
}

TEST(FuseAttentionTest, AWhereMaskBecomesAdditiveOrIsKept) {
  ExpectFused({.mask = "\n %s2: ? = Where(%keep, %s1, %inf)"}, ", %keep");
  const auto additive = [](absl::string_view where) {
    return absl::StrCat("graph {", kInputs, where, R"(
    %y: ? = reprise.Attention(%q, %k, %v, %a) {nan_to_zero = 0, num_heads = 2, packed_qkv = 0, scale = 0.5}
    output %y
    })");
  };
  // Fully masked rows count: a random mask of three has some.
  const auto expect = [&](absl::string_view mask, absl::string_view where) {
    const std::string text = Make({.mask = mask});
    EXPECT_EQ(OpsOf(Captured(text)), "Where reprise.Attention");
    ExpectSameAnswers(*FuseAttention(), text, {.rounds = 10});
    ExpectSameAnswers(*FuseAttention(), additive(where), {.rounds = 1});
  };
  expect("\n %s2: ? = Where(%keep, %s1, %low)", "\n %a: ? = Where(%keep, %zero, %low)");
  expect("\n %s2: ? = Where(%keep, %low, %s1)", "\n %a: ? = Where(%keep, %low, %zero)");
  expect("\n %s2: ? = Where(%keep, %inf, %s1)", "\n %a: ? = Where(%keep, %inf, %zero)");
}

TEST(FuseAttentionTest, AFillThatScoresCouldPassIsNoMask) {
  ExpectNotFused({.mask = "\n %s2: ? = Where(%keep, %s1, %not_low)"});
  ExpectNotFused({.mask = "\n %s2: ? = Where(%keep, %s1, %zero)"});
}

TEST(FuseAttentionTest, ARelativeBiasAndAMaskAreAddedUp) {
  const std::string text = Make({.mask = R"(
    %sb: ? = Add(%s1, %bias)
    %s2: ? = Add(%mask, %sb))"});
  EXPECT_EQ(OpsOf(Captured(text)), "Add reprise.Attention");
  ExpectSameAnswers(*FuseAttention(), text);
  ExpectFused({.mask = "\n %s2: ? = Add(%bias, %s1)"}, ", %bias");
}

TEST(FuseAttentionTest, AMaskThatIsSubtractedIsNegated) {
  const std::string text = Make({.mask = "\n %s2: ? = Sub(%s1, %mask)"});
  EXPECT_EQ(OpsOf(Captured(text)), "Neg reprise.Attention");
  ExpectSameAnswers(*FuseAttention(), text);
}

TEST(FuseAttentionTest, AMaskBeforeTheScaleIsNotTakenForOneBehindIt) {
  ExpectNotFused({.scores = "\n %s: ? = MatMul(%qh, %kh)", .mask = R"(
    %sm: ? = Add(%s, %mask)
    %s2: ? = Mul(%sm, %scale))"});
}

TEST(FuseAttentionTest, TheGuardAgainstNanGivesZeros) {
  const Parts parts = {.mask = R"(
    %a: ? = Where(%keep, %zero, %inf)
    %s2: ? = Add(%s1, %a))",
                       .softmax = R"(
    %p0: ? = Softmax(%s2)
    %nan: ? = IsNaN(%p0)
    %p: ? = Where(%nan, %zero, %p0))"};
  const Graph graph = Captured(Make(parts));
  EXPECT_EQ(OpsOf(graph), "Where reprise.Attention");
  EXPECT_EQ(graph.node(1).attributes.Int("nan_to_zero", 0), 1);
  ExpectSameAnswers(*FuseAttention(), Make(parts), {.rounds = 10});
}

TEST(FuseAttentionTest, AnotherGuardStays) {
  ExpectNotFused({.softmax = R"(
    %p0: ? = Softmax(%s2)
    %nan: ? = IsNaN(%p0)
    %p: ? = Where(%nan, %scale, %p0))"});
}

TEST(FuseAttentionTest, ProbabilitiesThatOthersReadStay) {
  ExpectNotFused({.result = absl::StrCat(kResult, "\n output %p")});
  ExpectNotFused({.result = absl::StrCat(kResult, "\n output %s")});
}

TEST(FuseAttentionTest, AnotherAxisOrAnotherProductStays) {
  ExpectNotFused({.softmax = "\n %p: ? = Softmax(%s2) {axis = 2}"});
  ExpectNotFused({.result = R"(
    %pt: ? = Transpose(%p) {perm = [0, 1, 3, 2]}
    %o: ? = MatMul(%pt, %vh)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens))"});
}

TEST(FuseAttentionTest, HeadsThatStayApartAreMovedBehindTheAttention) {
  const std::string text = Make({.result = "\n %y: ? = MatMul(%p, %vh)"});
  ExpectSameAnswers(*FuseAttention(), text);
  EXPECT_EQ(OpsOf(Captured(text)), "reprise.Attention Reshape Transpose");
}

TEST(FuseAttentionTest, HeadsThatAreRepeatedForGroupsOfQueriesAreRepeatedInTheirTokens) {
  const std::string text = Make({.k = R"(
    const %one_head: i64[5] = {2, 1, 1, 3, 4}
    const %two_heads: i64[5] = {2, 1, 2, 3, 4}
    const %whole: i64[4] = {2, 2, 3, 4}
    input %few_k: f32[2, 3, 4]
    input %few_v: f32[2, 3, 4]
    %k5: ? = Reshape(%few_k, %one_head)
    %kw: ? = Expand(%k5, %two_heads)
    %k4: ? = Reshape(%kw, %whole)
    %kh: ? = Transpose(%k4) {perm = [0, 1, 3, 2]})",
                                 .v = R"(
    %v5: ? = Reshape(%few_v, %one_head)
    %vw: ? = Expand(%v5, %two_heads)
    %vh: ? = Reshape(%vw, %whole))"});
  ExpectSameAnswers(*FuseAttention(), text);
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "reprise.Attention"), 1);
  EXPECT_EQ(CountOps(graph, "Transpose"), 0) << OpsOf(graph);
}

TEST(FuseAttentionTest, SeveralHeadsThatAreRepeatedComeFromTheirTokens) {
  const std::string text = AttentionGraph(R"(
    const %many: i64[4] = {2, 3, 4, 4}
    const %few: i64[4] = {2, 3, 2, 4}
    const %apart: i64[5] = {2, 2, 1, 3, 4}
    const %wide: i64[5] = {2, 2, 2, 3, 4}
    const %all: i64[4] = {2, 4, 3, 4}
    const %all_tokens: i64[3] = {2, 3, 16}
    input %many_q: f32[2, 3, 16]
    %q4: ? = Reshape(%many_q, %many)
    %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %k4: ? = Reshape(%k, %few)
    %kt: ? = Transpose(%k4) {perm = [0, 2, 1, 3]}
    %k5: ? = Reshape(%kt, %apart)
    %kw: ? = Expand(%k5, %wide)
    %kr: ? = Reshape(%kw, %all)
    %kh: ? = Transpose(%kr) {perm = [0, 1, 3, 2]}
    %v4: ? = Reshape(%v, %few)
    %vt: ? = Transpose(%v4) {perm = [0, 2, 1, 3]}
    %v5: ? = Reshape(%vt, %apart)
    %vw: ? = Expand(%v5, %wide)
    %vh: ? = Reshape(%vw, %all)
    %s: ? = MatMul(%qh, %kh)
    %p: ? = Softmax(%s) {axis = -1}
    %o: ? = MatMul(%p, %vh)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %all_tokens))");
  ExpectSameAnswers(*FuseAttention(), text);
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "reprise.Attention"), 1);
  EXPECT_EQ(CountOps(graph, "Transpose"), 0) << OpsOf(graph);
}

TEST(FuseAttentionTest, OperandsThatComeFromNoTokensAreTransposed) {
  // As with rotary embeddings: the heads are worked on before the product.
  const std::string text = Make({.q = R"(
    %q4: ? = Reshape(%q, %heads)
    %qt: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %qh: ? = Sin(%qt))",
                                 .k = R"(
    %k4: ? = Reshape(%k, %heads)
    %kt: ? = Transpose(%k4) {perm = [0, 2, 3, 1]}
    %kh: ? = Sin(%kt))"});
  ExpectSameAnswers(*FuseAttention(), text);
  EXPECT_EQ(CountOps(Captured(text), "reprise.Attention"), 1);
}

TEST(FuseAttentionTest, AHeadOrderThatIsAnotherIsTransposedToo) {
  // [size, heads] in a row rather than [heads, size].
  const std::string text = Make({.q = R"(
    const %swapped: i64[4] = {2, 3, 4, 2}
    %q4: ? = Reshape(%q, %swapped)
    %qh: ? = Transpose(%q4) {perm = [0, 3, 1, 2]})"});
  ExpectSameAnswers(*FuseAttention(), text);
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "reprise.Attention"), 1);
  EXPECT_GE(CountOps(graph, "Transpose"), 1);
}

TEST(FuseAttentionTest, ABatchThatIsRepeatedStays) {
  ExpectNotFused({.k = R"(
    input %k1: f32[1, 3, 8]
    const %heads1: i64[4] = {1, 3, 2, 4}
    %k4: ? = Reshape(%k1, %heads1)
    %kh: ? = Transpose(%k4) {perm = [0, 2, 3, 1]})"});
}

TEST(FuseAttentionTest, CrossAttentionKeepsItsOwnLengths) {
  const std::string text = Make({.k = R"(
    input %memory: f32[2, 5, 8]
    input %values: f32[2, 5, 12]
    const %heads_k: i64[4] = {2, 5, 2, 4}
    const %heads_v: i64[4] = {2, 5, 2, 6}
    const %tokens_v: i64[3] = {2, 3, 12}
    %k4: ? = Reshape(%memory, %heads_k)
    %kh: ? = Transpose(%k4) {perm = [0, 2, 3, 1]})",
                                 .v = R"(
    %v4: ? = Reshape(%values, %heads_v)
    %vh: ? = Transpose(%v4) {perm = [0, 2, 1, 3]})",
                                 .mask = "",
                                 .softmax = "\n %p: ? = Softmax(%s1)",
                                 .result = R"(
    %o: ? = MatMul(%p, %vh)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens_v))"});
  ExpectSameAnswers(*FuseAttention(), text);
  EXPECT_EQ(OpsOf(Captured(text)), "reprise.Attention");
}

TEST(FuseAttentionTest, OneHeadNeedsNoHeadsAtAll) {
  const std::string text = AttentionGraph(R"(
    %kt: ? = Transpose(%k) {perm = [0, 2, 1]}
    %s: ? = MatMul(%q, %kt)
    %s1: ? = Mul(%s, %scale)
    %p: ? = Softmax(%s1)
    %y: ? = MatMul(%p, %v))");
  ExpectSameAnswers(*FuseAttention(), text);
  EXPECT_EQ(OpsOf(Captured(text)), "reprise.Attention");
}

constexpr absl::string_view kAfterSplit = R"(
    %kt: ? = Transpose(%kh) {perm = [0, 1, 3, 2]}
    %s: ? = MatMul(%qh, %kt)
    %s1: ? = Mul(%s, %scale)
    %p: ? = Softmax(%s1)
    %o: ? = MatMul(%p, %vh)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens))";

TEST(FuseAttentionTest, OneSplitProjectionIsPacked) {
  const std::string split = AttentionGraph(absl::StrCat(R"(
    input %qkv: f32[2, 3, 24]
    %q3: ?, %k3: ?, %v3: ? = Split(%qkv) {axis = -1, num_outputs = 3}
    %q4: ? = Reshape(%q3, %heads)
    %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %k4: ? = Reshape(%k3, %heads)
    %kh: ? = Transpose(%k4) {perm = [0, 2, 1, 3]}
    %v4: ? = Reshape(%v3, %heads)
    %vh: ? = Transpose(%v4) {perm = [0, 2, 1, 3]})",
                                                        kAfterSplit));
  EXPECT_EQ(OpsOf(Captured(split)), "reprise.Attention");
  ExpectSameAnswers(*FuseAttention(), split);
}

TEST(FuseAttentionTest, OneGatheredProjectionIsPacked) {
  const auto graph = [](absl::string_view shape, absl::string_view perm) {
    return AttentionGraph(absl::StrCat(R"(
    input %qkv: f32[2, 3, 24]
    const %i0: i64[] = {0}
    const %i1: i64[] = {1}
    const %i2: i64[] = {-1}
    const %five: i64[5] = )",
                                       shape, R"(
    %h5: ? = Reshape(%qkv, %five)
    %t5: ? = Transpose(%h5) {perm = )",
                                       perm, R"(}
    %qh: ? = Gather(%t5, %i0)
    %kh: ? = Gather(%t5, %i1)
    %vh: ? = Gather(%t5, %i2))",
                                       kAfterSplit));
  };
  const std::string packed = graph("{2, 3, 3, 2, 4}", "[2, 0, 3, 1, 4]");
  EXPECT_EQ(OpsOf(Captured(packed)), "reprise.Attention");
  ExpectSameAnswers(*FuseAttention(), packed);
  // Heads outside, [q, k, v] inside: another layout, which needs its elements moved.
  const std::string interleaved = graph("{2, 3, 2, 3, 4}", "[3, 0, 2, 1, 4]");
  ExpectSameAnswers(*FuseAttention(), interleaved);
  EXPECT_EQ(CountOps(Captured(interleaved), "reprise.Attention"), 1);
}

TEST(FuseAttentionTest, EverySmallSizeGivesTheSameAnswers) {
  for (int batch : {1, 2}) {
    for (int sequence : {1, 2, 5}) {
      for (int heads : {1, 3}) {
        for (int size : {1, 4}) {
          const std::string text = absl::StrReplaceAll(R"(graph {
            input %x: f32[B, S, E]
            input %mask: f32[B, 1, 1, S]
            param %wq: f32[E, E] = p0
            param %wk: f32[E, E] = p1
            param %wv: f32[E, E] = p2
            param %bq: f32[E] = p3
            param %bv: f32[E] = p4
            const %heads: i64[4] = {B, S, H, D}
            const %tokens: i64[3] = {B, S, E}
            const %scale: f32[] = {0.5}
            %qm: ? = MatMul(%x, %wq)
            %q: ? = Add(%bq, %qm)
            %k: ? = MatMul(%x, %wk)
            %vm: ? = MatMul(%x, %wv)
            %v: ? = Add(%vm, %bv)
            %q4: ? = Reshape(%q, %heads)
            %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
            %k4: ? = Reshape(%k, %heads)
            %kh: ? = Transpose(%k4) {perm = [0, 2, 3, 1]}
            %v4: ? = Reshape(%v, %heads)
            %vh: ? = Transpose(%v4) {perm = [0, 2, 1, 3]}
            %s: ? = MatMul(%qh, %kh)
            %s1: ? = Mul(%s, %scale)
            %s2: ? = Add(%s1, %mask)
            %p: ? = Softmax(%s2)
            %o: ? = MatMul(%p, %vh)
            %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
            %y: ? = Reshape(%ot, %tokens)
            output %y
          })",
                                                       {{"[B", absl::StrCat("[", batch)},
                                                        {"{B", absl::StrCat("{", batch)},
                                                        {" S", absl::StrCat(" ", sequence)},
                                                        {" H", absl::StrCat(" ", heads)},
                                                        {" D}", absl::StrCat(" ", size, "}")},
                                                        {"[E", absl::StrCat("[", heads * size)},
                                                        {" E", absl::StrCat(" ", heads * size)},
                                                        {" Softmax", " Softmax"}});
          ExpectSameAnswersAfterCapture(text);
          // One projection, one attention, for every size.
          EXPECT_EQ(OpsOf(Captured(text)), "reprise.Linear reprise.Attention") << text;
        }
      }
    }
  }
}

TEST(FuseQkvTest, ThreeProjectionsBecomeOne) {
  ExpectRewrite(*FuseQkv(), R"(graph {
    input %x: f32[2, 3, 8]
    input %mask: f32[2, 1, 1, 3]
    param %wq: f32[8, 8] = p0
    param %wk: f32[8, 8] = p1
    param %wv: f32[8, 8] = p2
    param %bq: f32[8] = p3
    const %bk: f32[8] = {1, 2, 3, 4, 5, 6, 7, 8}
    %q: ? = reprise.Linear(%x, %wq, %bq) {activation = "none"}
    %k: ? = reprise.Linear(%x, %wk, %bk) {activation = "none"}
    %v: ? = reprise.Linear(%x, %wv) {activation = "none"}
    %y: ? = reprise.Attention(%q, %k, %v, %mask) {num_heads = 2, packed_qkv = 0, scale = 0.5}
    output %y
  })",
                R"(graph {
    input %x: f32[2, 3, 8]
    input %mask: f32[2, 1, 1, 3]
    param %w: f32[8, 24] = Concat{axis = 1}(p0, p1, p2)
    param %b: f32[24] = Concat{axis = 0}(p3, f32[8]{1, 2, 3, 4, 5, 6, 7, 8}, f32[8]{0, 0, 0, 0, 0, 0, 0, 0})
    %q: ? = reprise.Linear(%x, %w, %b) {activation = "none"}
    %y: ? = reprise.Attention(%q, _, _, %mask) {num_heads = 2, packed_qkv = 1, scale = 0.5}
    output %y
  })");
}

TEST(FuseQkvTest, OtherRowsSharedResultsAndActivationsStay) {
  const auto graph = [](absl::string_view k, absl::string_view rest = "") {
    return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 8]
    input %z: f32[2, 3, 8]
    param %wq: f32[8, 8] = p0
    param %wk: f32[8, 8] = p1
    param %wv: f32[8, 8] = p2
    %q: ? = reprise.Linear(%x, %wq) {activation = "none"}
    %k: ? = )",
                        k, R"(
    %v: ? = reprise.Linear(%x, %wv) {activation = "none"}
    %y: ? = reprise.Attention(%q, %k, %v) {num_heads = 2, packed_qkv = 0, scale = 0.5}
    output %y
    )",
                        rest, "}");
  };
  ExpectUnchanged(*FuseQkv(), graph("reprise.Linear(%z, %wk) {activation = \"none\"}"));
  ExpectUnchanged(*FuseQkv(), graph("reprise.Linear(%x, %wk) {activation = \"relu\"}"));
  ExpectUnchanged(*FuseQkv(), graph("reprise.Linear(%x, %wk, _, %z) {activation = \"none\"}"));
  ExpectUnchanged(*FuseQkv(),
                  graph("reprise.Linear(%x, %wk) {activation = \"none\"}", "output %k\n"));
}

}  // namespace
}  // namespace reprise
