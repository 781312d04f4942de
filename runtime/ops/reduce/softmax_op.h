// Softmax and its kin.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

template <OpText kOp>
struct SoftmaxFormOp : NamedOp<kOp> {
  enum Input : size_t { kX };

  int64_t axis = -1;
  OP_ATTRIBUTES(SoftmaxFormOp, axis)
};

using SoftmaxOp = SoftmaxFormOp<"Softmax">;
using LogSoftmaxOp = SoftmaxFormOp<"LogSoftmax">;
using HardmaxOp = SoftmaxFormOp<"Hardmax">;

}  // namespace reprise
