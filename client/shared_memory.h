// SharedMemory: memory that a program shares with a server on the same machine, so that tensors do
// not travel in messages.
//
// An object of POSIX shared memory is made and mapped; a server that runs with
// --system-shared-memory reads inputs from it and writes outputs to it, once
// Client::RegisterSharedMemory has told it of the object. The server copies, so that bytes may be
// changed as soon as the answer is there.
//
// Ownership: the object is unmapped, and its key removed, when the SharedMemory goes. A server that
//            has it registered still holds it until Client::UnregisterSharedMemory.
// Threads:   any thread that has the memory; a request that reads or writes a range owns it
//            until its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace reprise::client {

class SharedMemory {
 public:
  // `key`: "/" and a name that no object has yet. The memory is there at once, all of it, and zero.
  // ALREADY_EXISTS, INVALID_ARGUMENT and RESOURCE_EXHAUSTED name the key and the bytes.
  static absl::StatusOr<SharedMemory> Create(std::string key, size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept
      : key_(std::exchange(other.key_, "")), bytes_(std::exchange(other.bytes_, {})) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  const std::string& key() const { return key_; }
  absl::Span<std::byte> bytes() const { return bytes_; }

  // `count` elements that begin `offset` bytes after the start, which is aligned to a page.
  // INVALID_ARGUMENT for a range that does not lie in the memory or is not aligned to T.
  template <typename T>
  absl::StatusOr<absl::Span<T>> As(size_t offset, size_t count) const {
    if (absl::Status status = CheckRange(offset, count, sizeof(T)); !status.ok()) return status;
    return absl::MakeSpan(reinterpret_cast<T*>(bytes_.data() + offset), count);
  }

 private:
  SharedMemory(std::string key, absl::Span<std::byte> bytes)
      : key_(std::move(key)), bytes_(bytes) {}
  absl::Status CheckRange(size_t offset, size_t count, size_t element_bytes) const;
  void Release();

  std::string key_;  // empty: moved from
  absl::Span<std::byte> bytes_;
};

}  // namespace reprise::client
