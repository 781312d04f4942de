// Ops that read elements at indices that an operand gives.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

template <OpText kOp>
struct GatherFormOp : NamedOp<kOp> {
  enum Input : size_t { kX, kPlaces };

  int64_t axis = 0;
  OP_ATTRIBUTES(GatherFormOp, axis)
};

using GatherOp = GatherFormOp<"Gather">;
using GatherElementsOp = GatherFormOp<"GatherElements">;

struct GatherNdOp : NamedOp<"GatherND"> {
  enum Input : size_t { kX, kPlaces };

  int64_t batch_dims = 0;
  OP_ATTRIBUTES(GatherNdOp, batch_dims)
};

struct OneHotOp : NamedOp<"OneHot"> {
  enum Input : size_t { kPlaces, kDepth, kValues };
};

// Operands in pairs: a table, and the indices of its rows.
struct EmbeddingSumOp : NamedOp<"reprise.EmbeddingSum"> {};

struct CheckRangeOp : NamedOp<"reprise.CheckRange"> {
  enum Input : size_t { kX };

  int64_t low = 0;
  int64_t high = 0;
  OP_ATTRIBUTES(CheckRangeOp, low, high)
};

}  // namespace reprise
