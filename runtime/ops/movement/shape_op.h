// Sizes, and values made of them.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ShapeOp {
  static constexpr char kName[] = "Shape";
  enum Input : size_t { kX };
};

struct SizeOp {
  static constexpr char kName[] = "Size";
  enum Input : size_t { kX };
};

struct ConstantOfShapeOp {
  static constexpr char kName[] = "ConstantOfShape";
  enum Input : size_t { kShape };
};

struct RangeOp {
  static constexpr char kName[] = "Range";
  enum Input : size_t { kStart, kLimit, kDelta };
};

}  // namespace reprise
