#include "server/http2/session_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace reprise {
namespace {

constexpr size_t kMappedBytes = 16 << 10;

}  // namespace

SessionMemory::~SessionMemory() {
  for (const Block& block : mapped_) {
    if (block.data != nullptr) munmap(block.data, block.bytes);
  }
}

SessionMemory::Block* SessionMemory::Find(const void* data) {
  for (Block& block : mapped_) {
    if (block.data == data) return &block;
  }
  return nullptr;
}

void* SessionMemory::Take(size_t bytes) {
  Block* const free = bytes >= kMappedBytes ? Find(nullptr) : nullptr;
  if (free == nullptr) return std::malloc(bytes);
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  *free = {data, bytes};
  return data;
}

void* SessionMemory::TakeZeroed(size_t count, size_t bytes) { return std::calloc(count, bytes); }

void SessionMemory::Give(void* data) {
  Block* const mapped = data != nullptr ? Find(data) : nullptr;
  if (mapped == nullptr) return std::free(data);
  munmap(mapped->data, mapped->bytes);
  *mapped = {};
}

void* SessionMemory::Resize(void* data, size_t bytes) {
  Block* const mapped = data != nullptr ? Find(data) : nullptr;
  if (mapped == nullptr) return std::realloc(data, bytes);
  void* const moved = std::malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, std::min(bytes, mapped->bytes));
  Give(data);
  return moved;
}

}  // namespace reprise
