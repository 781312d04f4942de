// What the heap does with memory that nobody uses.
//
// Threads: any. Nothing under a sanitizer, whose heap is not that of the C library.
#pragma once

#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace reprise {

// Gives what the heap holds and nobody uses back to the system.
inline void ReturnFreedMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  malloc_trim(0);
#endif
}

// Keeps up to 32 MiB of it at hand. Answers of some megabytes, such as the caches of a decoder, are
// made and freed with every request: as pages that are new each time they cost more than the copy.
inline void KeepFreedMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
#endif
}

// Asks the system to back `bytes` of memory that the heap has just given out with huge pages, where
// they are many: what is too large for KeepFreedMemory is made of new pages every time.
inline void AskForHugePages(const void* memory, size_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) / kHugePage * kHugePage;
  if (end > begin + kHugePage) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace reprise
