// reprise.IntegerLinear.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct IntegerLinearOp : NamedOp<"reprise.IntegerLinear"> {
  enum Input : size_t { kA, kB, kAScale, kBScale, kAZero, kBZero, kBias, kResidual };

  std::string activation = "none";
  OP_ATTRIBUTES(IntegerLinearOp, activation)
};

}  // namespace reprise
