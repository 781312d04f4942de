// AlignedBuffer: owned bytes whose address is a multiple of 64 (a cache line, a vector register).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace reprise {

inline constexpr size_t kAlignment = 64;

constexpr size_t AlignUp(size_t bytes, size_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Movable, not copyable. The bytes are not initialised; large buffers are touched only when used.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc like `new` does; callers check sizes against their limits first.
  explicit AlignedBuffer(size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, AlignUp(bytes))));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

}  // namespace reprise
