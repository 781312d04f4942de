// Ops that give the same elements another shape.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ReshapeOp {
  static constexpr char kName[] = "Reshape";
  enum Input : size_t { kX, kShape };

  bool allowzero = false;

  static ReshapeOp From(const Attributes& attributes) {
    ReshapeOp op;
    ReadAttribute(attributes, "allowzero", op.allowzero);
    return op;
  }
  static ReshapeOp From(const Node& node) { return From(node.attributes); }
};

struct SqueezeOp {
  static constexpr char kName[] = "Squeeze";
  enum Input : size_t { kX, kAxes };
};

struct UnsqueezeOp {
  static constexpr char kName[] = "Unsqueeze";
  enum Input : size_t { kX, kAxes };
};

struct FlattenOp {
  static constexpr char kName[] = "Flatten";
  enum Input : size_t { kX };

  int64_t axis = 1;

  static FlattenOp From(const Attributes& attributes) {
    FlattenOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static FlattenOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
