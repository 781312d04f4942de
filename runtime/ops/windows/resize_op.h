// Resize.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ResizeOp : NamedOp<"Resize"> {
  enum Input : size_t { kX, kRoi, kScales, kSizes };

  std::string mode = "nearest";
  OP_ATTRIBUTES(ResizeOp, mode)
};

}  // namespace reprise
