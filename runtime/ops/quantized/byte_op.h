// Functions of bytes.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ByteTableOp {
  static constexpr char kName[] = "reprise.ByteTable";
  enum Input : size_t { kX, kTable };
};

struct IntegerAddOp {
  static constexpr char kName[] = "reprise.IntegerAdd";
  enum Input : size_t { kA, kB, kAScale, kBScale, kYScale, kAZero, kBZero, kYZero };

  std::string activation = "none";

  static IntegerAddOp From(const Attributes& attributes) {
    IntegerAddOp op;
    ReadAttribute(attributes, "activation", op.activation);
    return op;
  }
  static IntegerAddOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
