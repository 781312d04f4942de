// Reductions along axes, which operand 1 names.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

template <OpText kOp>
struct ReduceOp : NamedOp<kOp> {
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;
  OP_ATTRIBUTES(ReduceOp, keepdims)
};

using ReduceSumOp = ReduceOp<"ReduceSum">;
using ReduceMeanOp = ReduceOp<"ReduceMean">;
using ReduceMaxOp = ReduceOp<"ReduceMax">;
using ReduceMinOp = ReduceOp<"ReduceMin">;
using ReduceProdOp = ReduceOp<"ReduceProd">;
using ReduceL1Op = ReduceOp<"ReduceL1">;
using ReduceL2Op = ReduceOp<"ReduceL2">;

}  // namespace reprise
