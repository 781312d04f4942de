// Transpose.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

// Without `perm` the dims are reversed.
struct TransposeOp {
  static constexpr char kName[] = "Transpose";
  enum Input : size_t { kX };

  std::vector<int64_t> perm;

  static TransposeOp From(const Attributes& attributes) {
    TransposeOp op;
    ReadAttribute(attributes, "perm", op.perm);
    return op;
  }
  static TransposeOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
