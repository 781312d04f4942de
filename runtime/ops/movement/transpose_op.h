// Transpose.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

// Without `perm` the dims are reversed.
struct TransposeOp : NamedOp<"Transpose"> {
  enum Input : size_t { kX };

  std::vector<int64_t> perm;
  OP_ATTRIBUTES(TransposeOp, perm)
};

}  // namespace reprise
