// Scaled dot-product attention: the core that every form of it shares, and reprise.Attention.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.Attention(q, k, v, mask?, sinks?) {num_heads, head_size_v?, scale, nan_to_zero, mask,
// packed_qkv, softcap?}: q [B, Sq, H*D], k [B, Skv, H*D], v [B, Skv, H*Dv] -> [B, Sq, H*Dv]. With
// packed_qkv = 1 input 0 is [B, S, H*(D + D + Dv)] and inputs 1 and 2 are left out. With k_by_head
// = 1 k is [B, Hkv, Skv, D], with v_by_head = 1 v is [B, Hkv, Skv, Dv]. Hkv divides H (GQA; it
// equals H where only one of them is so): head h of the queries attends to head h / (H / Hkv). The
// mask is added (float32) or kept where true (bool), and broadcasts to [B, H, Sq, Skv]. `sinks`
// [H]: the softmax of a head's scores has one more score, whose weight has no value. A softcap
// other than 0: softcap * tanh(score / softcap) takes the place of a score before the mask does.
Rule AttentionRule;
Kernel AttentionKernel;

// Checks that inputs 0 to 2 of this op and of its form over segments are float32 and given as
// packed_qkv says.
absl::Status CheckAttentionInputs(InferContext& context);
// Checks that input `input`, where there is one, is a float32 for each of `heads`.
absl::Status CheckSinks(InferContext& context, size_t input, Size heads);

// A [batch, heads, rows, columns] operand somewhere in memory, by element strides; columns dense.
struct HeadView {
  const float* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  const float* row(int64_t batch, int64_t head, int64_t row) const {
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

struct AttentionProblem {
  int64_t batch = 1, heads = 0, queries = 0, keys = 0, size = 0, size_v = 0;
  int64_t kv_group = 1;  // query heads that share one key and value head
  HeadView q, k, v;
  float scale = 1;
  float softcap = 0;         // 0: none; otherwise softcap * tanh(score / softcap)
  bool nan_to_zero = false;  // a fully masked row gives zeros instead of NaN
  // Added to the capped scores; [batch, heads, queries, keys], empty: none. Minus infinity takes
  // the place of any score, also of NaN.
  std::vector<float> bias;
  // A score for each head that the softmax has besides the scores of keys; null: none.
  const float* sinks = nullptr;
  // Where the scores are wanted, after which step: 0 = scaled, 1 = capped, 2 = + bias, 3 = softmax.
  float* scores_out = nullptr;
  int scores_stage = 0;
};

// Writes out(batch, head, query, :) through `out`, laid out by the same rules.
void ComputeAttention(const AttentionProblem& problem, float* out, int64_t batch_stride,
                      int64_t head_stride, int64_t row_stride);

// Returns the mask as an additive [batch, heads, queries, keys] bias: float32 as it is, bools as 0
// / -inf.
std::vector<float> SpreadMask(const TensorView& mask, const Shape& scores);

}  // namespace reprise::ops
