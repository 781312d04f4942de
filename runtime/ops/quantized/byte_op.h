// Functions of bytes.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ByteTableOp : NamedOp<"reprise.ByteTable"> {
  enum Input : size_t { kX, kTable };
};

struct IntegerAddOp : NamedOp<"reprise.IntegerAdd"> {
  enum Input : size_t { kA, kB, kAScale, kBScale, kYScale, kAZero, kBZero, kYZero };

  std::string activation = "none";
  OP_ATTRIBUTES(IntegerAddOp, activation)
};

}  // namespace reprise
