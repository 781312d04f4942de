// Attention by distance, in the forms that exporters write, and graphs that only look like it.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/passes/testing/packing_harness.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Two rows of three tokens, two heads of four, five columns. The forms differ in how a batch
// repeats the tables, which terms there are, and how they meet scores and mask.
struct RelativeForm {
  std::string tables = R"(
    const %twice: i64[3] = {2, 1, 1}
    %atimes: ? = Tile(%a, %twice)
    %btimes: ? = Tile(%b, %twice)
    %at: ? = Transpose(%atimes) {perm = [0, 2, 1]}
    %bt: ? = Transpose(%btimes) {perm = [0, 2, 1]})";
  std::string indices = R"(
    const %falls: i64[3, 3] = {2, 1, 0, 3, 2, 1, 4, 3, 2}
    const %rises: i64[3, 3] = {2, 3, 4, 1, 2, 3, 0, 1, 2})";
  std::string terms = R"(
    %cq: ? = MatMul(%q3, %at)
    %gq: ? = GatherElements(%cq, %ai) {axis = -1}
    %tq: ? = Div(%gq, %root)
    %ck: ? = MatMul(%k3, %bt)
    %gk: ? = GatherElements(%ck, %bi) {axis = 2}
    %gkt: ? = Transpose(%gk) {perm = [0, 2, 1]}
    %tk: ? = Mul(%gkt, %half)
    %rel: ? = Add(%tq, %tk))";
  std::string masked = R"(
    %sum: ? = Add(%scores, %rel)
    %sum4: ? = Reshape(%sum, %four)
    %weights: ? = Where(%seen, %sum4, %low))";
};

std::string RelativeAttention(const RelativeForm& form) {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 8]
    input %seen: bool[2, 1, 3, 3]
    input %more: f32[2, 1, 1, 3]
    param %wq: f32[8, 8] = p0
    param %wk: f32[8, 8] = p1
    param %wv: f32[8, 8] = p2
    param %a: f32[2, 5, 4] = p3
    param %b: f32[2, 5, 4] = p4
    const %split: i64[4] = {2, 3, 2, 4}
    const %three: i64[3] = {4, 3, 4}
    const %square: i64[3] = {4, 3, 3}
    const %four: i64[4] = {2, 2, 3, 3}
    const %heads: i64[4] = {2, 2, 3, 4}
    const %joined: i64[3] = {2, 3, 8}
    const %root: f32[] = {3.5}
    const %half: f32[] = {0.5}
    const %low: f32[] = {-3.4028235e+38}
    %q: ? = MatMul(%x, %wq)
    %k: ? = MatMul(%x, %wk)
    %v: ? = MatMul(%x, %wv)
    %q4: ? = Reshape(%q, %split)
    %k4: ? = Reshape(%k, %split)
    %v4: ? = Reshape(%v, %split)
    %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %kh: ? = Transpose(%k4) {perm = [0, 2, 1, 3]}
    %vh: ? = Transpose(%v4) {perm = [0, 2, 1, 3]}
    %q3: ? = Reshape(%qh, %three)
    %k3: ? = Reshape(%kh, %three)
    %v3: ? = Reshape(%vh, %three)
    %kt: ? = Transpose(%k3) {perm = [0, 2, 1]}
    %ks: ? = Div(%kt, %root)
    %scores: ? = MatMul(%q3, %ks))",
                      form.tables, form.indices, R"(
    %ai: ? = Expand(%falls, %square)
    %bi: ? = Expand(%rises, %square))",
                      form.terms, form.masked, R"(
    %p: ? = Softmax(%weights) {axis = -1}
    %p3: ? = Reshape(%p, %square)
    %mixed: ? = MatMul(%p3, %v3)
    %m4: ? = Reshape(%mixed, %heads)
    %mt: ? = Transpose(%m4) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%mt, %joined)
    output %y
  })");
}

int FusedOf(const RelativeForm& form) {
  const std::string text = RelativeAttention(form);
  ExpectSameAnswersAfterCapture(text);
  return CountOps(Captured(text), "reprise.RelativeAttention");
}

TEST(FuseRelativeAttentionTest, BothTermsUnderAMaskThatChooses) {
  EXPECT_EQ(FusedOf({}), 1);
  const Graph graph = Captured(RelativeAttention({}));
  EXPECT_EQ(CountOps(graph, "Tile") + CountOps(graph, "GatherElements"), 0);
}

TEST(FuseRelativeAttentionTest, EitherTermAlone) {
  EXPECT_EQ(FusedOf({.terms = R"(
    %cq: ? = MatMul(%q3, %at)
    %gq: ? = GatherElements(%cq, %ai) {axis = -1}
    %rel: ? = Div(%gq, %root))"}),
            1);
  EXPECT_EQ(FusedOf({.terms = R"(
    %ck: ? = MatMul(%k3, %bt)
    %gk: ? = GatherElements(%ck, %bi) {axis = 2}
    %rel: ? = Transpose(%gk) {perm = [0, 2, 1]})"}),
            1);
}

TEST(FuseRelativeAttentionTest, TablesRepeatedByExpandInFourDims) {
  EXPECT_EQ(FusedOf({.tables = R"(
    const %wide: i64[4] = {2, 2, 5, 4}
    const %flat: i64[3] = {4, 5, 4}
    %awide: ? = Expand(%a, %wide)
    %aflat: ? = Reshape(%awide, %flat)
    %bwide: ? = Expand(%b, %wide)
    %bflat: ? = Reshape(%bwide, %flat)
    %at: ? = Transpose(%aflat) {perm = [0, 2, 1]}
    %bt: ? = Transpose(%bflat) {perm = [0, 2, 1]})"}),
            1);
}

TEST(FuseRelativeAttentionTest, AMaskThatIsAddedAndNone) {
  EXPECT_EQ(FusedOf({.masked = R"(
    %sum: ? = Add(%scores, %rel)
    %sum4: ? = Reshape(%sum, %four)
    %weights: ? = Add(%sum4, %more))"}),
            1);
  EXPECT_EQ(FusedOf({.masked = "\n    %weights: ? = Add(%scores, %rel)"}), 1);
}

// [rows * heads, queries, keys] are not scores of four dims.
TEST(FuseRelativeAttentionTest, NotWhereAMaskOfRowsAndHeadsInOneDimIsAdded) {
  const std::string mask = R"(
    const %wide: i64[4] = {2, 2, 3, 3}
    %spread: ? = Expand(%more, %wide)
    %flat: ? = Reshape(%spread, %square)
    %shifted: ? = Add(%rel, %flat)
    %sum: ? = Add(%scores, %shifted))";
  EXPECT_EQ(FusedOf({.masked = mask + "\n    %weights: ? = Reshape(%sum, %four)"}), 0);
}

// GatherElements may pick of fewer rows than there are.
TEST(FuseRelativeAttentionTest, NotWhereOneHeadIsPickedForAll) {
  EXPECT_EQ(FusedOf({.terms = R"(
    const %first: i64[3] = {1, 3, 3}
    const %first4: i64[4] = {1, 1, 3, 3}
    %one: ? = Reshape(%falls, %first)
    %cq: ? = MatMul(%q3, %at)
    %rel: ? = GatherElements(%cq, %one) {axis = -1})",
                     .masked = R"(
    %rel4: ? = Reshape(%rel, %first4)
    %scores4: ? = Reshape(%scores, %four)
    %weights: ? = Add(%scores4, %rel4))"}),
            0);
}

TEST(FuseRelativeAttentionTest, NotWhereAColumnHangsOnMoreThanTheDistance) {
  EXPECT_EQ(FusedOf({.indices = R"(
    const %falls: i64[3, 3] = {2, 1, 0, 3, 2, 1, 4, 3, 1}
    const %rises: i64[3, 3] = {2, 3, 4, 1, 2, 3, 0, 1, 2})"}),
            0);
}

TEST(FuseRelativeAttentionTest, NotWhereEachRowOfABatchHasATableOfItsOwn) {
  EXPECT_EQ(FusedOf({.tables = R"(
    const %pairs: i64[3] = {4, 5, 4}
    const %apart: i64[4] = {2, 1, 5, 4}
    const %spread: i64[4] = {2, 2, 5, 4}
    %aone: ? = Reshape(%a, %apart)
    %awide: ? = Expand(%aone, %spread)
    %aflat: ? = Reshape(%awide, %pairs)
    %bone: ? = Reshape(%b, %apart)
    %bwide: ? = Expand(%bone, %spread)
    %bflat: ? = Reshape(%bwide, %pairs)
    %at: ? = Transpose(%aflat) {perm = [0, 2, 1]}
    %bt: ? = Transpose(%bflat) {perm = [0, 2, 1]})"}),
            0);
}

TEST(FuseRelativeAttentionTest, NotWhereQueriesArePickedAsKeysAre) {
  EXPECT_EQ(FusedOf({.terms = R"(
    %ck: ? = MatMul(%q3, %bt)
    %gk: ? = GatherElements(%ck, %bi) {axis = 2}
    %rel: ? = Transpose(%gk) {perm = [0, 2, 1]})"}),
            0);
}

// A request's keys depend on its own length alone, whatever hides queries and keys.
TEST(FuseRelativeAttentionTest, RowsArePackedWithTheDistancesOfEach) {
  ExpectPacks(absl::StrCat(kX, kMask, kLength, R"(
    param %wk: f32[8, 8] = p0
    param %a: f32[2, 9, 4] = p1
    const %zero: i64[] = {0}
    const %step: i64[] = {1}
    const %minus: i64[] = {-4}
    const %most: i64[] = {4}
    const %two1: i64[1] = {2}
    const %three1: i64[1] = {3}
    const %size1: i64[1] = {4}
    const %width1: i64[1] = {8}
    const %root: f32[] = {2}
    const %none: f32[] = {0}
    const %low: f32[] = {-3.4028235e+38}
    %batch0: ? = Gather(%xs, %zero)
    %batch: ? = Unsqueeze(%batch0, %zero1)
    %all: ? = Mul(%batch, %two1)
    %split: ? = Concat(%batch, %len, %two1, %size1) {axis = 0}
    %three: ? = Concat(%all, %len, %size1) {axis = 0}
    %square: ? = Concat(%all, %len, %len) {axis = 0}
    %four: ? = Concat(%batch, %two1, %len, %len) {axis = 0}
    %heads: ? = Concat(%batch, %two1, %len, %size1) {axis = 0}
    %joined: ? = Concat(%batch, %len, %width1) {axis = 0}
    %times: ? = Concat(%batch, %one1, %one1) {axis = 0}
    %places: ? = Range(%zero, %len0, %step)
    %pq: ? = Unsqueeze(%places, %one1)
    %pk: ? = Unsqueeze(%places, %zero1)
    %apart: ? = Sub(%pq, %pk)
    %near: ? = Max(%apart, %minus)
    %near2: ? = Min(%near, %most)
    %index: ? = Add(%near2, %most)
    %wide: ? = Expand(%index, %square)
    %key: ? = MatMul(%x, %wk)
    %q4: ? = Reshape(%x, %split)
    %k4: ? = Reshape(%key, %split)
    %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %kh: ? = Transpose(%k4) {perm = [0, 2, 1, 3]}
    %q3: ? = Reshape(%qh, %three)
    %k3: ? = Reshape(%kh, %three)
    %kt: ? = Transpose(%k3) {perm = [0, 2, 1]}
    %ks: ? = Div(%kt, %root)
    %scores: ? = MatMul(%q3, %ks)
    %copies: ? = Tile(%a, %times)
    %at: ? = Transpose(%copies) {perm = [0, 2, 1]}
    %cq: ? = MatMul(%q3, %at)
    %rel: ? = GatherElements(%cq, %wide) {axis = -1}
    %sum: ? = Add(%scores, %rel)
    %sum4: ? = Reshape(%sum, %four)
    %mk1: ? = Unsqueeze(%mask, %one1)
    %mk: ? = Unsqueeze(%mk1, %two1)
    %mq1: ? = Unsqueeze(%mask, %one1)
    %mq: ? = Unsqueeze(%mq1, %three1)
    %both: ? = Mul(%mk, %mq)
    %seen: ? = Cast(%both) {to = 9}
    %masked: ? = Where(%seen, %sum4, %low)
    %p: ? = Softmax(%masked) {axis = -1}
    %p3: ? = Reshape(%p, %square)
    %mixed: ? = MatMul(%p3, %q3)
    %m4: ? = Reshape(%mixed, %heads)
    %mt: ? = Transpose(%m4) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%mt, %joined)
    output %y)"));
}

}  // namespace
}  // namespace reprise
