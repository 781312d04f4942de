#include "runtime/device/cpu/simd/weight_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "runtime/base/aligned_buffer.h"
#include "runtime/base/memory_net.h"

namespace reprise::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::shared_ptr<std::byte> MapChunk(size_t bytes) {
  // One huge page more than asked for leaves room to begin at the start of one.
  const size_t mapped = bytes + kHugePage;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw NoMemory(bytes);
  auto* base =
      reinterpret_cast<std::byte*>(AlignUp(reinterpret_cast<uintptr_t>(mapping), kHugePage));
  // Advice: where it is refused nothing but speed is lost.
  madvise(base, bytes, MADV_HUGEPAGE);
  return std::shared_ptr<std::byte>(base,
                                    [mapping, mapped](std::byte*) { munmap(mapping, mapped); });
}

}  // namespace

std::shared_ptr<std::byte> WeightMemory::Allocate(size_t bytes) {
  const size_t wanted = AlignUp(std::max<size_t>(bytes, 1));
  MutexLock lock(mutex_);
  std::shared_ptr<std::byte> chunk = chunk_.lock();
  if (chunk == nullptr || used_bytes_ + wanted > chunk_bytes_) {
    chunk_bytes_ = std::max(kChunkBytes, AlignUp(wanted, kHugePage));
    chunk = MapChunk(chunk_bytes_);
    chunk_ = chunk;
    used_bytes_ = 0;
  }
  std::byte* block = chunk.get() + used_bytes_;
  used_bytes_ += wanted;
  return std::shared_ptr<std::byte>(std::move(chunk), block);
}

}  // namespace reprise::cpu
