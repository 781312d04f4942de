// Elements repeated.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ExpandOp : NamedOp<"Expand"> {
  enum Input : size_t { kX, kShape };
};

struct TileOp : NamedOp<"Tile"> {
  enum Input : size_t { kX, kRepeats };
};

}  // namespace reprise
