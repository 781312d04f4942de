// reprise.Linear: rows by weights, with the steps that follow.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct LinearOp {
  static constexpr char kName[] = "reprise.Linear";
  enum Input : size_t { kX, kWeights, kBias, kResidual };

  std::string activation = "none";

  static LinearOp From(const Attributes& attributes) {
    LinearOp op;
    ReadAttribute(attributes, "activation", op.activation);
    return op;
  }
  static LinearOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
