// Choosing, converting, copying.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct WhereOp : NamedOp<"Where"> {
  enum Input : size_t { kCondition, kThen, kElse };
};

// `to`: the number that ONNX gives to the dtype.
struct CastOp : NamedOp<"Cast"> {
  enum Input : size_t { kX };

  int64_t to = 0;
  OP_ATTRIBUTES(CastOp, to)
};

struct CastLikeOp : NamedOp<"CastLike"> {
  enum Input : size_t { kX, kLike };
};

struct IdentityOp : NamedOp<"Identity"> {
  enum Input : size_t { kX };
};

struct DropoutOp : NamedOp<"Dropout"> {
  enum Input : size_t { kX };
};

}  // namespace reprise
