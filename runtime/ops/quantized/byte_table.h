// reprise.ByteTable: a function of one byte, looked up for each.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Inputs:
//   0 x      u8 or s8
//   1 table  u8 or s8 [256]: the results, in the order of x's bits (-1 follows 127)
// Output of table's dtype and x's shape: y[i] = table[bits of x[i]].
Rule ByteTableRule;
Kernel ByteTableKernel;

// Elements of a table.
inline constexpr int64_t kByteValues = 256;

}  // namespace reprise::ops
