// MakeSharedBytes: bytes that tensors share, at a multiple of 64, not initialised.
//
// Large ones have pages of their own, which go back to the system with the last owner: the
// temporary memory of loading and tuning a model, several times its largest weight, would otherwise
// stay with the heap of the thread that freed it.
//
// Threads: any.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>

#include "runtime/base/aligned_buffer.h"
#include "runtime/base/memory_net.h"

namespace reprise {

inline constexpr size_t kBytesWithPagesOfTheirOwn = size_t{256} << 10;

// Throws NoMemory as `new` throws std::bad_alloc; callers check sizes against their limits first.
inline std::shared_ptr<void> MakeSharedBytes(size_t bytes) {
  if (bytes < kBytesWithPagesOfTheirOwn) {
    auto buffer = std::make_shared<AlignedBuffer>(bytes);
    void* data = buffer->data();
    return {std::move(buffer), data};
  }
  void* pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (pages == MAP_FAILED) throw NoMemory(bytes);
  return {pages, [bytes](void* data) { munmap(data, bytes); }};
}

}  // namespace reprise
