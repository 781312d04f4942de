// Arena: bytes whose address never moves while they grow.
//
// A large range of addresses is reserved once, which costs nothing; Ensure() makes its first bytes
// usable. Pages become memory when they are first written. Recipes of one stream share its arena.
//
// Ownership: frees its range when it goes. Movable, not copyable.
// Threads:   Ensure and Touch from any; Release never during a replay on the arena.
//
//   ASSIGN_OR_RETURN(Arena arena, Arena::Reserve());
//   RETURN_IF_ERROR(arena.Ensure(recipe.arena_bytes));
#pragma once

#include <atomic>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"

namespace reprise {

struct ArenaOptions {
  // Addresses reserved, rounded up to pages. Under a limit on address space at most an eighth of
  // the rest, since other arenas, threads, weights and files need some; where the system does not
  // grant that, the amount is halved until it does, down to 8 MiB.
  size_t limit_bytes = size_t{64} << 30;
  // Ask for 2 MiB pages: fewer TLB misses, memory in steps of 2 MiB.
  bool huge_pages = true;
};

class Arena {
 public:
  // Reserves addresses. RESOURCE_EXHAUSTED when not even the least range can be reserved.
  static absl::StatusOr<Arena> Reserve(const ArenaOptions& options = {});

  Arena() = default;  // holds nothing; every Ensure above 0 is RESOURCE_EXHAUSTED
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // Makes the first `bytes` usable; never shrinks, never moves bytes that are there. New bytes are
  // zero. RESOURCE_EXHAUSTED, naming both numbers, beyond the limit or when memory is out.
  absl::Status Ensure(size_t bytes);

  // Makes the first `bytes` usable, and their pages memory now. Their contents stay. Does as much
  // as the system allows: a page that is left out becomes memory when it is first written.
  void Touch(size_t bytes);

  // Gives all pages back to the system. The bytes stay usable and read as zero.
  void Release();

  std::byte* base() const { return base_; }  // aligned to 2 MiB
  size_t bytes() const { return bytes_; }    // usable: whole pages, huge ones where it has them
  size_t limit_bytes() const { return limit_bytes_; }

 private:
  std::byte* base_ = nullptr;
  std::atomic<size_t> bytes_{0};
  Mutex growing_;  // held to change bytes_
  size_t limit_bytes_ = 0;
  size_t step_bytes_ = 0;    // bytes_ grows by multiples of this
  void* mapping_ = nullptr;  // the whole mapping, for munmap; base_ is its first aligned address
  size_t mapping_bytes_ = 0;
};

}  // namespace reprise
