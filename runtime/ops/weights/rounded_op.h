// Weights of floats that become numbers of a few bits.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

// reprise.RoundedPart: the numbers of a rounded matrix, or its factors.
struct RoundedPartOp : NamedOp<"reprise.RoundedPart"> {
  static constexpr char kNumbers[] = "numbers", kScales[] = "scales";

  std::string part;
  int64_t bits = 8;
  int64_t block = 0;  // 0: a factor for each column
  int64_t axis = 1;   // the dim of columns
  OP_ATTRIBUTES(RoundedPartOp, part, bits, block, axis)
};

}  // namespace reprise
