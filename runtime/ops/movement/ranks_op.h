// Ops that exchange values with the other ranks of a model; see ranks.h.
// See typed_op.h.
#pragma once

#include <vector>

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct AllReduceOp : NamedOp<"reprise.AllReduce"> {
  enum Input : size_t { kX };
};

struct AllGatherOp : NamedOp<"reprise.AllGather"> {
  enum Input : size_t { kX };

  int64_t rank = 0;             // whose columns the operand has
  std::vector<int64_t> widths;  // columns by rank
  OP_ATTRIBUTES(AllGatherOp, rank, widths)
};

}  // namespace reprise
