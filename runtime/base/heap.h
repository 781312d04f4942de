// How the heap treats unused memory, and blocks that are too large for it.
//
// Threads: any.
#pragma once

#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace reprise {

// Blocks of this size or larger are mapped separately.
inline constexpr size_t kMappedBytes = size_t{32} << 20;

// Returns the heap's unused memory to the system. Does nothing under a sanitizer, which does not
// use the C library's heap.
inline void ReturnFreedMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  malloc_trim(0);
#endif
}

// Returns the free end of the calling thread's arena to the system as well: malloc_trim does that
// for the first arena only, and KeepFreedMemory lets the ends grow to kMappedBytes.
inline void ReturnFreedEndOfThread() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // The threshold is the process's: one thread at a time lowers it.
  static std::mutex turn;
  const std::lock_guard<std::mutex> lock(turn);
  mallopt(M_TRIM_THRESHOLD, 0);
  // The end is looked at when a block of 64 KiB or more is freed.
  void* block = std::malloc(size_t{128} << 10);
  asm volatile("" : "+r"(block) : : "memory");  // else the compiler leaves both calls out
  std::free(block);
  mallopt(M_TRIM_THRESHOLD, kMappedBytes);
#endif
}

// Keeps up to kMappedBytes of freed memory for reuse. Answers of some megabytes, such as the caches
// of a decoder, are made and freed with every request: on fresh pages each time they cost more than
// the copy. Does nothing under a sanitizer.
inline void KeepFreedMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, kMappedBytes);
#endif
}

// Asks the system to back a block of `bytes` bytes that the heap has just given out with huge
// pages, if it was mapped for itself: its pages are new every time.
inline void AskForHugePages(const void* block, size_t bytes) {
  if (bytes < kMappedBytes) return;
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(block) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(block) + bytes) / kHugePage * kHugePage;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace reprise
