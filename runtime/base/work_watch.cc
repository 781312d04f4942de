#include "runtime/base/work_watch.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>

namespace reprise {

void WorkWatch::Look() {
  left_ = kStepsPerLook;
  if (!Ends()) return;
  ended_ = true;
  throw WorkEnded();
}

void WorkWatch::TakeBytes(size_t bytes) {
  if (max_bytes_ == 0) return;
  const auto wanted = static_cast<int64_t>(std::min(bytes, size_t{1} << 62));
  if (wanted > max_bytes_ - bytes_) {
    ended_ = true;
    OnTooMuch(wanted > INT64_MAX - bytes_ ? INT64_MAX : bytes_ + wanted);
    throw WorkEnded();
  }
  bytes_ += wanted;
}

// A block may be older than the watch.
void WorkWatch::GiveBytes(size_t bytes) noexcept {
  bytes_ = std::max<int64_t>(bytes_ - static_cast<int64_t>(bytes), 0);
}

}  // namespace reprise

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

// The other forms of the C++ library, but for aligned blocks, come down to these two.
void* operator new(size_t bytes) {
  using reprise::WorkWatch;
  WorkWatch* const watch = WorkWatch::current();
  if (bytes >= WorkWatch::kCountedBytes && watch != nullptr) [[unlikely]]
    watch->TakeBytes(bytes);
  while (true) {
    if (void* const block = std::malloc(std::max<size_t>(bytes, 1))) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept {
  using reprise::WorkWatch;
  WorkWatch* const watch = WorkWatch::current();
  if (watch != nullptr && block != nullptr) [[unlikely]] {
    // Some bytes more than were asked for.
    const size_t bytes = malloc_usable_size(block);
    if (bytes >= WorkWatch::kCountedBytes) watch->GiveBytes(bytes);
  }
  std::free(block);
}

#endif
