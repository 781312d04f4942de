// Ops that write elements at indices that an operand gives.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ScatterElementsOp : NamedOp<"ScatterElements"> {
  enum Input : size_t { kX, kPlaces, kUpdates };

  int64_t axis = 0;
  std::string reduction = "none";
  OP_ATTRIBUTES(ScatterElementsOp, axis, reduction)
};

struct ScatterNdOp : NamedOp<"ScatterND"> {
  enum Input : size_t { kX, kPlaces, kUpdates };

  std::string reduction = "none";
  OP_ATTRIBUTES(ScatterNdOp, reduction)
};

}  // namespace reprise
