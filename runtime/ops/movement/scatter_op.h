// Ops that write elements at indices that an operand gives.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ScatterElementsOp {
  static constexpr char kName[] = "ScatterElements";
  enum Input : size_t { kX, kPlaces, kUpdates };

  int64_t axis = 0;
  std::string reduction = "none";

  static ScatterElementsOp From(const Attributes& attributes) {
    ScatterElementsOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "reduction", op.reduction);
    return op;
  }
  static ScatterElementsOp From(const Node& node) { return From(node.attributes); }
};

struct ScatterNdOp {
  static constexpr char kName[] = "ScatterND";
  enum Input : size_t { kX, kPlaces, kUpdates };

  std::string reduction = "none";

  static ScatterNdOp From(const Attributes& attributes) {
    ScatterNdOp op;
    ReadAttribute(attributes, "reduction", op.reduction);
    return op;
  }
  static ScatterNdOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
