// Rows into columns, of words of 32 bits, whatever they hold.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_info.h"

namespace reprise::cpu {

// to[j * ld_to + i] = from[i * ld_from + j] for i < rows, j < columns; the sides do not overlap.
// Reads and writes whole stretches of a cache line where there are as many rows: who has long rows
// of `to` calls it for blocks that the cache holds.
using Transpose = void (*)(const float* from, int64_t ld_from, int64_t rows, int64_t columns,
                           float* to, int64_t ld_to);

// The function of the highest tier that is not above `isa`.
Transpose TransposeFor(Isa isa);

}  // namespace reprise::cpu
