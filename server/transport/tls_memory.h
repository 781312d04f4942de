// The memory that OpenSSL works with.
//
// A connection has a buffer of 16 KiB and some for each record that comes or goes, and gives it
// back once the record has moved. In the heap, small blocks that stay would take the room of such a
// buffer before the next connection needs it: each connection would leave two of them behind. They
// have a place of their own instead, and everything else is in the heap.
//
// OpenSSL knows one such place a process and hands no pointer of ours along: what is here is the
// process's.
//
// Threads: any.
#pragma once

#include <cstddef>

namespace reprise {

// Before anything else is asked of OpenSSL. False: it was used already, and goes on with the heap.
bool UseTlsMemory();

// As malloc, realloc and free.
void* TakeTlsMemory(size_t bytes);
void* ResizeTlsMemory(void* data, size_t bytes);
void GiveTlsMemory(void* data);

// Whether `data` is a buffer in the place of its own.
bool IsTlsBuffer(const void* data);

}  // namespace reprise
