// Branches and loops; see branch.h and loop.h for their operands.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct IfOp : NamedOp<"If"> {
  enum Input : size_t { kCondition };
};

struct LoopOp : NamedOp<"Loop"> {
  enum Input : size_t { kTripCount, kCondition, kFirstCarried };

  int64_t loop = 0;
  int64_t carried = 0;
  OP_ATTRIBUTES(LoopOp, loop, carried)
};

struct LoopStepOp : NamedOp<"reprise.LoopStep"> {
  int64_t loop = 0;
  OP_ATTRIBUTES(LoopStepOp, loop)
};

}  // namespace reprise
