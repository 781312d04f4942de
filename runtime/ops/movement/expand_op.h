// Elements repeated.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ExpandOp {
  static constexpr char kName[] = "Expand";
  enum Input : size_t { kX, kShape };
};

struct TileOp {
  static constexpr char kName[] = "Tile";
  enum Input : size_t { kX, kRepeats };
};

}  // namespace reprise
