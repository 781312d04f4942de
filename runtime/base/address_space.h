// How many addresses the process may still take: `ulimit -v`, as shells and some containers set it.
//
// Threads: FreeAddressBytes any, and it reads the limit again at each call; SpareAddresses from
// main, before there are other threads.
#pragma once

#include <cstdint>

namespace reprise {

// Returns bytes; the largest int64 where there is no limit.
int64_t FreeAddressBytes();

// Lowers, where there is a limit, the addresses that threads reserve: stacks of 2 MiB, and two
// shared heaps, of which each would reserve 64 MiB otherwise.
void SpareAddresses();

}  // namespace reprise
