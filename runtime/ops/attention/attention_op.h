// reprise.Attention, and the forms that become it.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct AttentionOp : NamedOp<"reprise.Attention"> {
  enum Input : size_t { kQueries, kKeys, kValues, kMask, kSinks };

  int64_t num_heads = 0;
  float scale = 1;
  bool nan_to_zero = false;
  int64_t head_size_v = 0;
  bool packed_qkv = false;
  bool k_by_head = false;
  bool v_by_head = false;
  float softcap = 0;
  OP_ATTRIBUTES(AttentionOp, num_heads, scale, nan_to_zero, head_size_v, packed_qkv, k_by_head,
                v_by_head, softcap)
};

struct OnnxAttentionOp : NamedOp<"Attention"> {};

// The same with one more input: a score of each head that has no key and no value.
struct SinkAttentionOp : NamedOp<"reprise.SinkAttention"> {
  enum Input : size_t { kSinks = 7 };
};

struct MicrosoftAttentionOp : NamedOp<"com.microsoft.Attention"> {};
struct MultiHeadAttentionOp : NamedOp<"com.microsoft.MultiHeadAttention"> {};
struct QAttentionOp : NamedOp<"com.microsoft.QAttention"> {};

}  // namespace reprise
