#include "server/transport/tls_memory.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace reprise {
namespace {

// The least and the most bytes of a buffer for a record: its largest payload, and what goes around.
constexpr size_t kLeastBytes = 16 << 10;
constexpr size_t kSlotBytes = 20 << 10;
constexpr size_t kSlots = 1024;  // whoever comes when all are taken has the heap
// Buffers in use at a time for which their pages are kept afterwards.
constexpr size_t kKeptSlots = 32;

class Slots {
 public:
  Slots() {
    void* const all = mmap(nullptr, kSlotBytes * kSlots, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return;
    begin_ = static_cast<char*>(all);
    free_.reserve(kSlots);
    for (size_t i = kSlots; i > 0; --i) free_.push_back(begin_ + (i - 1) * kSlotBytes);
  }

  bool Has(const void* data) const {
    const auto* const byte = static_cast<const char*>(data);
    return begin_ != nullptr && byte >= begin_ && byte < begin_ + kSlotBytes * kSlots;
  }

  // Null: all are taken.
  void* Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return nullptr;
    char* const slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void Give(void* slot) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kSlots - free_.size() > kKeptSlots) madvise(slot, kSlotBytes, MADV_DONTNEED);
    free_.push_back(static_cast<char*>(slot));  // the next one takes what is warm
  }

 private:
  char* begin_ = nullptr;
  std::mutex mutex_;
  std::vector<char*> free_;
};

// Never destroyed: OpenSSL gives memory back when the process ends.
Slots& AllSlots() {
  static Slots* const slots = new Slots;
  return *slots;
}

}  // namespace

bool UseTlsMemory() {
  AllSlots();
  return CRYPTO_set_mem_functions(
             [](size_t bytes, const char*, int) { return TakeTlsMemory(bytes); },
             [](void* data, size_t bytes, const char*, int) {
               return ResizeTlsMemory(data, bytes);
             },
             [](void* data, const char*, int) { GiveTlsMemory(data); }) == 1;
}

bool IsTlsBuffer(const void* data) { return AllSlots().Has(data); }

void* TakeTlsMemory(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes >= kLeastBytes && bytes <= kSlotBytes) {
    if (void* const slot = AllSlots().Take(); slot != nullptr) return slot;
  }
  return std::malloc(bytes);
}

void* ResizeTlsMemory(void* data, size_t bytes) {
  if (data == nullptr) return TakeTlsMemory(bytes);
  if (bytes == 0) {
    GiveTlsMemory(data);
    return nullptr;
  }
  if (!IsTlsBuffer(data)) return std::realloc(data, bytes);
  if (bytes <= kSlotBytes) return data;
  void* const moved = std::malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, kSlotBytes);
  GiveTlsMemory(data);
  return moved;
}

void GiveTlsMemory(void* data) {
  if (IsTlsBuffer(data)) return AllSlots().Give(data);
  std::free(data);
}

}  // namespace reprise
