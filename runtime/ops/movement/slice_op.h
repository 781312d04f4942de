// Slice.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct SliceOp : NamedOp<"Slice"> {
  enum Input : size_t { kX, kStarts, kEnds, kAxes, kSteps };
};

}  // namespace reprise
