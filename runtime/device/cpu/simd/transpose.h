// Rows into columns, of words of 32 bits, whatever they hold.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// Sets to[j * ld_to + i] = from[i * ld_from + j] for i < rows, j < columns; the sides do not
// overlap. It reads and writes whole cache lines where there are enough rows: a caller with long
// rows of `to` calls it for blocks that the cache holds.
using Transpose = void (*)(const float* from, int64_t ld_from, int64_t rows, int64_t columns,
                           float* to, int64_t ld_to);

// Returns the function of the highest tier that is not above `isa`.
Transpose TransposeFor(Isa isa);

}  // namespace reprise::cpu
