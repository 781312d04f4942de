// Where the heads of an attention come from: tokens, repeated heads, one projection for all.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/fuse/attention_form.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(FuseAttentionHeadsTest, HeadsThatStayApartAreMovedBehindTheAttention) {
  const std::string text = Attention({.result = "\n %y: ? = MatMul(%p, %vh)"});
  ExpectSameAnswers(*FuseAttention(), text);
  EXPECT_EQ(OpsOf(Captured(text)), "reprise.Attention Reshape Transpose");
}

TEST(FuseAttentionHeadsTest, HeadsThatAreRepeatedForGroupsOfQueriesAreRepeatedInTheirTokens) {
  const std::string text = Attention({.k = R"(
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

TEST(FuseAttentionHeadsTest, SeveralHeadsThatAreRepeatedComeFromTheirTokens) {
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

TEST(FuseAttentionHeadsTest, HeadsCutBySlicesAreThoseOfOneProjection) {
  // PyTorch writes unbind and scaled_dot_product_attention in this way: half of the scale on either
  // side, keys transposed where heads and rows are one dim.
  const std::string text = AttentionGraph(R"(
    input %qkv: f32[2, 3, 24]
    const %apart: i64[5] = {2, 3, 3, 2, 4}
    const %c0: i64[1] = {0}
    const %c1: i64[1] = {1}
    const %c2: i64[1] = {2}
    const %from_end: i64[1] = {-1}
    const %end: i64[1] = {9223372036854775807}
    const %root: f32[] = {0.70710677}
    %p5: ? = Reshape(%qkv, %apart)
    %p: ? = Transpose(%p5) {perm = [2, 0, 3, 1, 4]}
    %q5: ? = Slice(%p, %c0, %c1, %c0)
    %k5: ? = Slice(%p, %c1, %c2, %c0, %c1)
    %v5: ? = Slice(%p, %from_end, %end, %c0)
    %q4: ? = Squeeze(%q5, %c0)
    %k4: ? = Squeeze(%k5, %c0)
    %v4: ? = Squeeze(%v5, %c0)
    %qs: ? = Mul(%q4, %root)
    %k3: ? = Reshape(%k4, %folded)
    %kt: ? = Transpose(%k3) {perm = [0, 2, 1]}
    %ku: ? = Reshape(%kt, %unfolded_k)
    %ks: ? = Mul(%ku, %root)
    %s: ? = MatMul(%qs, %ks)
    %sm: ? = Add(%s, %mask)
    %w: ? = Softmax(%sm) {axis = -1}
    %o: ? = MatMul(%w, %v4)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens))");
  ExpectSameAnswers(*FuseAttention(), text);
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "reprise.Attention"), 1);
  EXPECT_EQ(CountOps(graph, "Transpose") + CountOps(graph, "Slice"), 0) << OpsOf(graph);
}

TEST(FuseAttentionHeadsTest, OperandsThatComeFromNoTokensAreTransposed) {
  // Rotary embeddings do this: the heads are worked on before the product.
  const std::string text = Attention({.q = R"(
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

TEST(FuseAttentionHeadsTest, AHeadOrderThatIsAnotherIsTransposedToo) {
  // [size, heads] in a row rather than [heads, size].
  const std::string text = Attention({.q = R"(
    const %swapped: i64[4] = {2, 3, 4, 2}
    %q4: ? = Reshape(%q, %swapped)
    %qh: ? = Transpose(%q4) {perm = [0, 3, 1, 2]})"});
  ExpectSameAnswers(*FuseAttention(), text);
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "reprise.Attention"), 1);
  EXPECT_GE(CountOps(graph, "Transpose"), 1);
}

TEST(FuseAttentionHeadsTest, ABatchThatIsRepeatedStays) {
  ExpectNotFused({.k = R"(
    input %k1: f32[1, 3, 8]
    const %heads1: i64[4] = {1, 3, 2, 4}
    %k4: ? = Reshape(%k1, %heads1)
    %kh: ? = Transpose(%k4) {perm = [0, 2, 3, 1]})"});
}

TEST(FuseAttentionHeadsTest, CrossAttentionKeepsItsOwnLengths) {
  const std::string text = Attention({.k = R"(
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

TEST(FuseAttentionHeadsTest, OneHeadNeedsNoHeadsAtAll) {
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

TEST(FuseAttentionHeadsTest, OneSplitProjectionIsPacked) {
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

TEST(FuseAttentionHeadsTest, OneGatheredProjectionIsPacked) {
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

}  // namespace
}  // namespace reprise
