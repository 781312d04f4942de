// reprise.Attention, and the forms that become it.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct AttentionOp {
  static constexpr char kName[] = "reprise.Attention";
  enum Input : size_t { kQueries, kKeys, kValues, kMask, kSinks };

  int64_t num_heads = 0;
  float scale = 1;
  bool nan_to_zero = false;
  int64_t head_size_v = 0;
  bool packed_qkv = false;
  bool k_by_head = false;
  bool v_by_head = false;
  float softcap = 0;

  static AttentionOp From(const Attributes& attributes) {
    AttentionOp op;
    ReadAttribute(attributes, "num_heads", op.num_heads);
    ReadAttribute(attributes, "scale", op.scale);
    ReadAttribute(attributes, "nan_to_zero", op.nan_to_zero);
    ReadAttribute(attributes, "head_size_v", op.head_size_v);
    ReadAttribute(attributes, "packed_qkv", op.packed_qkv);
    ReadAttribute(attributes, "k_by_head", op.k_by_head);
    ReadAttribute(attributes, "v_by_head", op.v_by_head);
    ReadAttribute(attributes, "softcap", op.softcap);
    return op;
  }
  static AttentionOp From(const Node& node) { return From(node.attributes); }
};

struct OnnxAttentionOp {
  static constexpr char kName[] = "Attention";
};

// The same with one more input: a score of each head that has no key and no value.
struct SinkAttentionOp {
  static constexpr char kName[] = "reprise.SinkAttention";
  enum Input : size_t { kSinks = 7 };
};

struct MicrosoftAttentionOp {
  static constexpr char kName[] = "com.microsoft.Attention";
};

struct MultiHeadAttentionOp {
  static constexpr char kName[] = "com.microsoft.MultiHeadAttention";
};

struct QAttentionOp {
  static constexpr char kName[] = "com.microsoft.QAttention";
};

}  // namespace reprise
