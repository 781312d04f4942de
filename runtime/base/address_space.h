// How many addresses the process may still take: `ulimit -v`, as shells and some containers set it.
//
// Threads: any. Read anew at each call.
#pragma once

#include <cstdint>

namespace reprise {

// Bytes; the largest int64 where there is no limit.
int64_t FreeAddressBytes();

}  // namespace reprise
