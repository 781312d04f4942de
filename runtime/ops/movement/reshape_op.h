// Ops that give the same elements another shape.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ReshapeOp : NamedOp<"Reshape"> {
  enum Input : size_t { kX, kShape };

  bool allowzero = false;
  OP_ATTRIBUTES(ReshapeOp, allowzero)
};

struct SqueezeOp : NamedOp<"Squeeze"> {
  enum Input : size_t { kX, kAxes };
};

struct UnsqueezeOp : NamedOp<"Unsqueeze"> {
  enum Input : size_t { kX, kAxes };
};

struct FlattenOp : NamedOp<"Flatten"> {
  enum Input : size_t { kX };

  int64_t axis = 1;
  OP_ATTRIBUTES(FlattenOp, axis)
};

}  // namespace reprise
