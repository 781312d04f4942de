#include "runtime/base/spare_heap.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <new>

namespace reprise {
namespace {

// In front of every block. The free ones are a list in the order of their addresses.
struct alignas(std::max_align_t) SpareBlock {
  size_t bytes;  // Includes this header.
  SpareBlock* next;
};

alignas(SpareBlock) std::byte spare_bytes[kSpareHeapBytes];  // no memory until it is written
constinit std::mutex spare_mutex;
constinit SpareBlock* spare_free = nullptr;
constinit bool spare_is_made = false;
constinit std::atomic<size_t> spare_taken{0};

std::byte* EndOf(SpareBlock* block) { return reinterpret_cast<std::byte*>(block) + block->bytes; }

bool IsSpare(const void* block) {
  const std::less<const void*> before;
  return !before(block, spare_bytes) && before(block, spare_bytes + kSpareHeapBytes);
}

}  // namespace

void* TakeSpare(size_t bytes, size_t most) noexcept {
  if (bytes > kMostSpareBytes) return nullptr;
  const size_t whole = (bytes + sizeof(SpareBlock) - 1) / sizeof(SpareBlock) * sizeof(SpareBlock) +
                       sizeof(SpareBlock);
  const std::lock_guard<std::mutex> lock(spare_mutex);
  if (spare_taken + whole > most) return nullptr;
  if (!spare_is_made) {
    spare_is_made = true;
    spare_free = new (spare_bytes) SpareBlock{.bytes = kSpareHeapBytes, .next = nullptr};
  }
  for (SpareBlock** place = &spare_free; *place != nullptr; place = &(*place)->next) {
    SpareBlock* const block = *place;
    if (block->bytes < whole) continue;
    // The rest has room for a header: all sizes are multiples of one.
    if (block->bytes == whole) {
      *place = block->next;
    } else {
      *place = new (reinterpret_cast<std::byte*>(block) + whole)
          SpareBlock{.bytes = block->bytes - whole, .next = block->next};
      block->bytes = whole;
    }
    spare_taken += whole;
    return block + 1;
  }
  return nullptr;
}

bool GiveSpare(void* block) noexcept {
  if (!IsSpare(block)) return false;
  SpareBlock* const given = static_cast<SpareBlock*>(block) - 1;
  const std::lock_guard<std::mutex> lock(spare_mutex);
  spare_taken -= given->bytes;
  SpareBlock* before = nullptr;
  SpareBlock* after = spare_free;
  while (after != nullptr && std::less<>()(after, given)) {
    before = after;
    after = after->next;
  }
  given->next = after;
  if (after != nullptr && EndOf(given) == reinterpret_cast<std::byte*>(after)) {
    given->bytes += after->bytes;
    given->next = after->next;
  }
  if (before == nullptr) {
    spare_free = given;
  } else if (EndOf(before) == reinterpret_cast<std::byte*>(given)) {
    before->bytes += given->bytes;
    before->next = given->next;
  } else {
    before->next = given;
  }
  return true;
}

size_t SpareBytesTaken() noexcept { return spare_taken.load(std::memory_order_relaxed); }

}  // namespace reprise
