// The heap of the daemon: blocks that a watched thread takes and gives back are counted, and
// threads that have to go on without memory have the spare heap.
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>

#include "runtime/base/spare_heap.h"
#include "runtime/base/work_watch.h"

// A sanitizer has a heap of its own.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define REPRISE_HEAP_OF_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPRISE_HEAP_OF_SANITIZER
#endif

#ifndef REPRISE_HEAP_OF_SANITIZER

namespace reprise {
namespace {

// Returns the spare bytes that this thread may take: all while an exception passes destructors,
// which cannot throw another.
size_t MostSpare() { return std::uncaught_exceptions() > 0 ? kSpareHeapBytes : SpareScope::most(); }

}  // namespace
}  // namespace reprise

// Allocates, watched. All other forms of the C++ library but aligned blocks come down to these two.
void* operator new(size_t bytes) {
  using reprise::WorkWatch;
  WorkWatch* const watch = WorkWatch::current();
  if (bytes >= WorkWatch::kCountedBytes && watch != nullptr) [[unlikely]]
    watch->TakeBytes(bytes);
  while (true) {
    if (void* const block = std::malloc(std::max<size_t>(bytes, 1))) return block;
    if (void* const block = reprise::TakeSpare(bytes, reprise::MostSpare())) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept {
  using reprise::WorkWatch;
  if (reprise::GiveSpare(block)) [[unlikely]]
    return;
  WorkWatch* const watch = WorkWatch::current();
  if (watch != nullptr && block != nullptr) [[unlikely]] {
    // Some bytes more than were asked for.
    const size_t bytes = malloc_usable_size(block);
    if (bytes >= WorkWatch::kCountedBytes) watch->GiveBytes(bytes);
  }
  std::free(block);
}

void operator delete(void* block, size_t) noexcept { operator delete(block); }

#endif
