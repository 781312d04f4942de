// ReturnFreedMemory: gives what the heap holds and nobody uses back to the system.
//
// Threads: any.
#pragma once

#include <malloc.h>

namespace reprise {

// Nothing under a sanitizer, whose heap is not that of the C library.
inline void ReturnFreedMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  malloc_trim(0);
#endif
}

}  // namespace reprise
