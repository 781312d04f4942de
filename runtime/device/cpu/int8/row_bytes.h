// Rows of floats as bytes, to the bit as ops/products/round_rows.h says it: each row by its own
// range.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/ops/products/round_rows.h"

namespace reprise::cpu {

struct RowBytesKernels {
  // Writes a byte for each of `count` numbers of a row.
  ops::RowScale (*round)(const float* row, int64_t count, uint8_t* bytes);
};

// Returns the kernels of the highest tier that is not above `isa`.
const RowBytesKernels& RowBytesKernelsFor(Isa isa);

}  // namespace reprise::cpu
