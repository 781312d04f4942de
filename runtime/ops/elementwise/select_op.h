// Choosing, converting, copying.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct WhereOp {
  static constexpr char kName[] = "Where";
  enum Input : size_t { kCondition, kThen, kElse };
};

// `to`: the number that ONNX gives to the dtype.
struct CastOp {
  static constexpr char kName[] = "Cast";
  enum Input : size_t { kX };

  int64_t to = 0;

  static CastOp From(const Attributes& attributes) {
    CastOp op;
    ReadAttribute(attributes, "to", op.to);
    return op;
  }
  static CastOp From(const Node& node) { return From(node.attributes); }
};

struct CastLikeOp {
  static constexpr char kName[] = "CastLike";
  enum Input : size_t { kX, kLike };
};

struct IdentityOp {
  static constexpr char kName[] = "Identity";
  enum Input : size_t { kX };
};

struct DropoutOp {
  static constexpr char kName[] = "Dropout";
  enum Input : size_t { kX };
};

}  // namespace reprise
