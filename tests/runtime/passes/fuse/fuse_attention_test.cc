// The usual forms of attention, their scales and masks.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/fuse/attention_form.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

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
  const AttentionParts parts = {.q = R"(
    %q4: ? = Reshape(%q, %heads)
    %qt: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %qh: ? = Mul(%qt, %root_scale))",
                                .k = R"(
    %k4: ? = Reshape(%k, %heads)
    %kt: ? = Transpose(%k4) {perm = [0, 2, 3, 1]}
    %kh: ? = Mul(%root_scale, %kt))",
                                .scores = "\n %s1: ? = MatMul(%qh, %kh)"};
  ExpectSameAnswers(*FuseAttention(), Attention(parts));
  const Graph graph = Captured(Attention(parts));
  EXPECT_EQ(OpsOf(graph), "reprise.Attention");
  EXPECT_NEAR(graph.node(0).attributes.Float("scale", 0), 0.5, 1e-6);
}

TEST(FuseAttentionTest, BatchAndHeadsMayBeOneDim) {
  const AttentionParts parts = {.q = R"(
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
  AttentionParts unmasked = parts;
  unmasked.mask = "";
  unmasked.softmax = "\n %p: ? = Softmax(%s1) {axis = 2}";
  ExpectFused(unmasked, "");
}

TEST(FuseAttentionTest, AWhereMaskBecomesAdditiveOrIsKept) {
  ExpectFused({.mask = "\n %s2: ? = Where(%keep, %s1, %inf)"}, ", %keep");
  const auto additive = [](absl::string_view where) {
    return absl::StrCat("graph {", kAttentionInputs, where, R"(
    %y: ? = reprise.Attention(%q, %k, %v, %a) {nan_to_zero = 0, num_heads = 2, packed_qkv = 0, scale = 0.5}
    output %y
    })");
  };
  // Fully masked rows count: a random mask of three has some.
  const auto expect = [&](absl::string_view mask, absl::string_view where) {
    const std::string text = Attention({.mask = mask});
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
  const std::string text = Attention({.mask = R"(
    %sb: ? = Add(%s1, %bias)
    %s2: ? = Add(%mask, %sb))"});
  EXPECT_EQ(OpsOf(Captured(text)), "Add reprise.Attention");
  ExpectSameAnswers(*FuseAttention(), text);
  ExpectFused({.mask = "\n %s2: ? = Add(%bias, %s1)"}, ", %bias");
}

// Which decides where all keys of a query are hidden, by the one or the other: random masks of
// three hide some so.
TEST(FuseAttentionTest, AKeyThatTwoMasksHideIsAsLowAsInTheModel) {
  for (const char* masks :
       {"\n %sb: ? = Where(%seen, %s1, %low) \n %s2: ? = Where(%keep, %sb, %low)",
        "\n %sb: ? = Add(%s1, %table) \n %s2: ? = Where(%keep, %sb, %low)",
        "\n %sb: ? = Where(%hidden, %low, %s1) \n %s2: ? = Where(%keep, %sb, %inf)",
        "\n %sb: ? = Where(%keep, %s1, %low) \n %s2: ? = Where(%hidden, %low, %sb)",
        "\n %sb: ? = Where(%seen, %s1, %low) \n %s2: ? = Add(%sb, %mask)"}) {
    const std::string text = Attention({.mask = absl::StrCat(R"(
    %seen: ? = Greater(%bias, %zero)
    %hidden: ? = Not(%seen)
    %table: ? = Where(%seen, %zero, %low))",
                                                             masks)});
    EXPECT_THAT(OpsOf(Captured(text)), testing::HasSubstr("reprise.Attention")) << text;
    ExpectSameAnswers(*FuseAttention(), text, {.rounds = 20});
  }
}

TEST(FuseAttentionTest, AMaskThatIsSubtractedIsNegated) {
  const std::string text = Attention({.mask = "\n %s2: ? = Sub(%s1, %mask)"});
  EXPECT_EQ(OpsOf(Captured(text)), "Neg reprise.Attention");
  ExpectSameAnswers(*FuseAttention(), text);
}

// CodeGen's, as dynamo exports it.
TEST(FuseAttentionTest, AMaskBeforeTheScaleIsScaledWithTheScores) {
  const std::string text = Attention({.scores = "\n %s: ? = MatMul(%qh, %kh)", .mask = R"(
    %sm: ? = Add(%s, %mask)
    %s2: ? = Mul(%sm, %scale))"});
  EXPECT_EQ(OpsOf(Captured(text)), "Mul reprise.Attention");
  ExpectSameAnswers(*FuseAttention(), text);
}

TEST(FuseAttentionTest, TheGuardAgainstNanGivesZeros) {
  const AttentionParts parts = {.mask = R"(
    %a: ? = Where(%keep, %zero, %inf)
    %s2: ? = Add(%s1, %a))",
                                .softmax = R"(
    %p0: ? = Softmax(%s2)
    %nan: ? = IsNaN(%p0)
    %p: ? = Where(%nan, %zero, %p0))"};
  const Graph graph = Captured(Attention(parts));
  EXPECT_EQ(OpsOf(graph), "Where reprise.Attention");
  EXPECT_EQ(graph.node(1).attributes.Int("nan_to_zero", 0), 1);
  ExpectSameAnswers(*FuseAttention(), Attention(parts), {.rounds = 10});
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

}  // namespace
}  // namespace reprise
