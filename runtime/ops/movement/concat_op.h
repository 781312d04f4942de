// Concat and Split.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ConcatOp {
  static constexpr char kName[] = "Concat";

  int64_t axis = 0;

  static ConcatOp From(const Attributes& attributes) {
    ConcatOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static ConcatOp From(const Node& node) { return From(node.attributes); }
};

struct SplitOp {
  static constexpr char kName[] = "Split";
  enum Input : size_t { kX, kSizes };

  int64_t axis = 0;

  static SplitOp From(const Attributes& attributes) {
    SplitOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static SplitOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
