// Indices of extremes, and running sums.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

template <OpText kOp>
struct ArgOp : NamedOp<kOp> {
  enum Input : size_t { kX };

  int64_t axis = 0;
  bool keepdims = true;
  bool select_last_index = false;
  OP_ATTRIBUTES(ArgOp, axis, keepdims, select_last_index)
};

using ArgMaxOp = ArgOp<"ArgMax">;
using ArgMinOp = ArgOp<"ArgMin">;

struct TopKOp : NamedOp<"TopK"> {
  enum Input : size_t { kX, kK };

  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  OP_ATTRIBUTES(TopKOp, axis, largest, sorted)
};

struct CumSumOp : NamedOp<"CumSum"> {
  enum Input : size_t { kX, kAxis };

  bool exclusive = false;
  bool reverse = false;
  OP_ATTRIBUTES(CumSumOp, exclusive, reverse)
};

}  // namespace reprise
