// Sizes, and values made of them.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ShapeOp : NamedOp<"Shape"> {
  enum Input : size_t { kX };
};

struct SizeOp : NamedOp<"Size"> {
  enum Input : size_t { kX };
};

struct ConstantOfShapeOp : NamedOp<"ConstantOfShape"> {
  enum Input : size_t { kShape };
};

struct RangeOp : NamedOp<"Range"> {
  enum Input : size_t { kStart, kLimit, kDelta };
};

}  // namespace reprise
