// WeightMemory: where packed weights live.
//
// With few rows a product is bound by reading its weights, and then half of the time goes to
// address translation when they lie in small pages. So they are placed one after another in chunks
// that the system is asked to back with huge pages.
//
// Ownership: a block keeps its chunk alive; a chunk is given back when its last block is dropped.
// Threads: all methods from any thread.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/base/mutex.h"

namespace reprise::cpu {

class WeightMemory {
 public:
  // `bytes` of memory aligned to a cache line. Throws std::bad_alloc like `new` does.
  std::shared_ptr<std::byte> Allocate(size_t bytes) EXCLUDES(mutex_);

 private:
  static constexpr size_t kChunkBytes = size_t{32} << 20;

  Mutex mutex_;
  // The chunk that is being filled; only its blocks own it.
  std::weak_ptr<std::byte> chunk_ GUARDED_BY(mutex_);
  size_t chunk_bytes_ GUARDED_BY(mutex_) = 0;
  size_t used_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise::cpu
