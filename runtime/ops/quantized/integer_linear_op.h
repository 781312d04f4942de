// reprise.IntegerLinear.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct IntegerLinearOp {
  static constexpr char kName[] = "reprise.IntegerLinear";
  enum Input : size_t { kA, kB, kAScale, kBScale, kAZero, kBZero, kBias, kResidual };

  std::string activation = "none";

  static IntegerLinearOp From(const Attributes& attributes) {
    IntegerLinearOp op;
    ReadAttribute(attributes, "activation", op.activation);
    return op;
  }
  static IntegerLinearOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
