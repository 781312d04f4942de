// Concat and Split.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ConcatOp : NamedOp<"Concat"> {
  int64_t axis = 0;
  OP_ATTRIBUTES(ConcatOp, axis)
};

struct SplitOp : NamedOp<"Split"> {
  enum Input : size_t { kX, kSizes };

  int64_t axis = 0;
  OP_ATTRIBUTES(SplitOp, axis)
};

}  // namespace reprise
