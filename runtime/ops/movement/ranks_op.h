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

struct BroadcastOp : NamedOp<"reprise.Broadcast"> {
  enum Input : size_t { kX };

  int64_t rank = 0;            // that computes the node
  int64_t root = 0;            // whose operand all ranks get
  std::vector<int64_t> sizes;  // dims of the result after the first
  OP_ATTRIBUTES(BroadcastOp, rank, root, sizes)
};

}  // namespace reprise
