// Pooling.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct MaxPoolOp : NamedOp<"MaxPool"> {
  enum Input : size_t { kX };
};

struct AveragePoolOp : NamedOp<"AveragePool"> {
  enum Input : size_t { kX };
};

struct GlobalMaxPoolOp : NamedOp<"GlobalMaxPool"> {
  enum Input : size_t { kX };
};

struct GlobalAveragePoolOp : NamedOp<"GlobalAveragePool"> {
  enum Input : size_t { kX };
};

}  // namespace reprise
