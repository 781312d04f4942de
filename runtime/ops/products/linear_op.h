// reprise.Linear: rows by weights, with the steps that follow.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct LinearOp : NamedOp<"reprise.Linear"> {
  enum Input : size_t { kX, kWeights, kBias, kResidual };

  std::string activation = "none";
  OP_ATTRIBUTES(LinearOp, activation)
};

}  // namespace reprise
