// How many addresses the process may still take: `ulimit -v`, as shells and some containers set it.
//
// Threads: FreeAddressBytes any, and it reads anew at each call; SpareAddresses from main, before
// there are other threads.
#pragma once

#include <cstdint>

namespace reprise {

// Bytes; the largest int64 where there is no limit.
int64_t FreeAddressBytes();

// Where there is a limit: threads have stacks of 2 MiB, and share two heaps, of which each would
// reserve 64 MiB otherwise.
void SpareAddresses();

}  // namespace reprise
