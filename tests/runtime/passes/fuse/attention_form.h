// Attention as exporters write it, part by part, as text: tests replace one part.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {

// Two rows of three tokens, two heads of four.
inline constexpr absl::string_view kAttentionInputs = R"(
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

// `body`, which makes %y, over these inputs.
inline std::string AttentionGraph(absl::string_view body) {
  return absl::StrCat("graph {", kAttentionInputs, body, "\n output %y\n}");
}

// The parts of the usual form; tests replace one.
inline constexpr absl::string_view kQ = R"(
    %q4: ? = Reshape(%q, %heads)
    %qh: ? = Transpose(%q4) {perm = [0, 2, 1, 3]})";
inline constexpr absl::string_view kK = R"(
    %k4: ? = Reshape(%k, %heads)
    %kh: ? = Transpose(%k4) {perm = [0, 2, 3, 1]})";
inline constexpr absl::string_view kV = R"(
    %v4: ? = Reshape(%v, %heads)
    %vh: ? = Transpose(%v4) {perm = [0, 2, 1, 3]})";
inline constexpr absl::string_view kScores = R"(
    %s: ? = MatMul(%qh, %kh)
    %s1: ? = Mul(%s, %scale))";
inline constexpr absl::string_view kAddMask = "\n %s2: ? = Add(%s1, %mask)";
inline constexpr absl::string_view kSoftmax = "\n %p: ? = Softmax(%s2) {axis = -1}";
inline constexpr absl::string_view kResult = R"(
    %o: ? = MatMul(%p, %vh)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens))";

struct AttentionParts {
  absl::string_view q = kQ, k = kK, v = kV, scores = kScores, mask = kAddMask, softmax = kSoftmax,
                    result = kResult;
};

inline std::string Attention(const AttentionParts& parts) {
  return AttentionGraph(absl::StrCat(parts.q, parts.k, parts.v, parts.scores, parts.mask,
                                     parts.softmax, parts.result));
}

// Returns the form as one node.
inline std::string FusedAttention(absl::string_view mask, absl::string_view attributes) {
  return absl::StrCat("graph {", kAttentionInputs, "\n %y: ? = reprise.Attention(%q, %k, %v", mask,
                      ") {", attributes, "}\n output %y\n}");
}

inline constexpr absl::string_view kPlain =
    "nan_to_zero = 0, num_heads = 2, packed_qkv = 0, scale = 0.5";

// FuseAttention makes one node of the form.
inline void ExpectFused(const AttentionParts& parts, absl::string_view mask = ", %mask",
                        absl::string_view attributes = kPlain) {
  ExpectRewrite(*FuseAttention(), Attention(parts), FusedAttention(mask, attributes));
}

// It leaves it alone.
inline void ExpectNotFused(const AttentionParts& parts) {
  ExpectUnchanged(*FuseAttention(), Attention(parts));
}

}  // namespace reprise
