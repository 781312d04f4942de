#include "runtime/memory/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/address_space.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/memory_net.h"

namespace reprise {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLeastReservation = size_t{8} << 20;
// One arena takes this part of the addresses that are left.
constexpr size_t kAddressesPart = 8;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

absl::StatusOr<Arena> Arena::Reserve(const ArenaOptions& options) {
  const auto left = static_cast<size_t>(FreeAddressBytes());
  size_t limit =
      AlignUp(std::min(options.limit_bytes, std::max(left / kAddressesPart, kLeastReservation)),
              PageBytes());
  while (true) {
    // The extra huge page leaves room to align the base, so that whole huge pages fit.
    const size_t mapping_bytes = limit + kHugePage;
    void* mapping =
        mmap(nullptr, mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping != MAP_FAILED) {
      Arena arena;
      arena.mapping_ = mapping;
      arena.mapping_bytes_ = mapping_bytes;
      arena.limit_bytes_ = limit;
      arena.base_ =
          reinterpret_cast<std::byte*>(AlignUp(reinterpret_cast<uintptr_t>(mapping), kHugePage));
      // Only advice: a system without huge pages refuses it, which does no harm.
      if (options.huge_pages) madvise(arena.base_, limit, MADV_HUGEPAGE);
      // A page that may be used in part only is never a huge one, and stays small when the rest may
      // be used too.
      arena.step_bytes_ = options.huge_pages ? kHugePage : PageBytes();
      return arena;
    }
    if (limit / 2 < kLeastReservation) {
      return NoMemoryStatus("an arena (addresses, see ulimit -v)", limit);
    }
    limit = AlignUp(limit / 2, PageBytes());
  }
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(base_, other.base_);
  bytes_ = other.bytes_.exchange(bytes_);
  std::swap(limit_bytes_, other.limit_bytes_);
  std::swap(step_bytes_, other.step_bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

absl::Status Arena::Ensure(size_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  if (bytes > limit_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "an arena of ", bytes, " bytes is needed, its limit is ", limit_bytes_, " bytes"));
  }
  MutexLock lock(growing_);
  if (bytes <= bytes_) return absl::OkStatus();
  const size_t wanted = std::min(AlignUp(bytes, step_bytes_), limit_bytes_);
  if (mprotect(base_ + bytes_, wanted - bytes_, PROT_READ | PROT_WRITE) != 0) {
    ++times_without_memory;
    return absl::ResourceExhaustedError(absl::StrCat("cannot grow an arena from ", bytes_.load(),
                                                     " to ", wanted,
                                                     " bytes: ", std::strerror(errno)));
  }
  bytes_ = wanted;
  return absl::OkStatus();
}

void Arena::Touch(size_t bytes) {
  if (bytes == 0 || !Ensure(bytes).ok()) return;
  bytes = std::min(AlignUp(bytes, PageBytes()), bytes_.load());
  if (madvise(base_, bytes, MADV_POPULATE_WRITE) == 0 || errno != EINVAL) return;
  // For a system that does not know the advice. A replay may be writing: nothing is changed here.
  for (size_t i = 0; i < bytes; i += PageBytes()) {
    __atomic_fetch_or(reinterpret_cast<unsigned char*>(base_ + i), 0, __ATOMIC_RELAXED);
  }
}

void Arena::Release() {
  if (bytes_ > 0) madvise(base_, bytes_, MADV_DONTNEED);
}

}  // namespace reprise
