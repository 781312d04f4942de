#include "runtime/memory/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "runtime/base/memory_net.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

// Pages of the arena that are in memory.
size_t ResidentPages(const Arena& arena) {
  const size_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> resident(arena.bytes() / page);
  EXPECT_EQ(mincore(arena.base(), arena.bytes(), resident.data()), 0);
  size_t count = 0;
  for (unsigned char flags : resident) count += flags & 1;
  return count;
}

TEST(ArenaTest, GrowsInPlaceAndKeepsItsBytes) {
  auto arena = Arena::Reserve();
  ASSERT_TRUE(arena.ok()) << arena.status();
  ASSERT_TRUE(arena->Ensure(1000).ok());
  std::byte* const base = arena->base();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(base) % 64, 0u);
  EXPECT_GE(arena->bytes(), 1000u);
  std::memset(base, 0x5A, 1000);

  ASSERT_TRUE(arena->Ensure(100 << 20).ok());
  EXPECT_EQ(arena->base(), base);
  EXPECT_EQ(base[999], std::byte{0x5A});
  EXPECT_EQ(base[(100 << 20) - 1], std::byte{0});
  base[(100 << 20) - 1] = std::byte{1};
}

// Memory that is usable in part only is never one huge page, however much more is asked for later.
TEST(ArenaTest, IsUsableInWholeHugePages) {
  auto arena = Arena::Reserve();
  ASSERT_TRUE(arena.ok());
  for (size_t bytes : {size_t{1}, size_t{3} << 20, size_t{64} << 20}) {
    ASSERT_TRUE(arena->Ensure(bytes).ok());
    EXPECT_GE(arena->bytes(), bytes);
    EXPECT_EQ(arena->bytes() % (size_t{2} << 20), 0u) << bytes;
  }
}

TEST(ArenaTest, AskingForLessChangesNothing) {
  auto arena = Arena::Reserve();
  ASSERT_TRUE(arena.ok());
  ASSERT_TRUE(arena->Ensure(1 << 20).ok());
  const size_t bytes = arena->bytes();
  ASSERT_TRUE(arena->Ensure(1).ok());
  EXPECT_EQ(arena->bytes(), bytes);
}

TEST(ArenaTest, BeyondTheLimitIsAnErrorWithBothNumbers) {
  auto arena = Arena::Reserve({.limit_bytes = 1 << 20});
  ASSERT_TRUE(arena.ok());
  ASSERT_TRUE(arena->Ensure(1 << 20).ok());
  const absl::Status status = arena->Ensure((1 << 20) + 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048577"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576"));
  EXPECT_EQ(arena->bytes(), size_t{1} << 20);
}

// Ends the process with 0 if the lack of addresses is named and counted.
void ReserveWithoutAddresses() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto held = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE));
  const rlimit limit = {.rlim_cur = held + (1 << 20), .rlim_max = RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  const int64_t before = times_without_memory;
  const absl::Status status = Arena::Reserve().status();
  _exit(absl::IsResourceExhausted(status) && times_without_memory == before + 1 ? 0 : 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ArenaTest, TheLackOfAddressesIsCountedAsALackOfMemory) {
  EXPECT_EXIT(ReserveWithoutAddresses(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST(ArenaTest, AnEmptyArenaRefusesToGrow) {
  Arena arena;
  EXPECT_TRUE(arena.Ensure(0).ok());
  EXPECT_EQ(arena.Ensure(1).code(), absl::StatusCode::kResourceExhausted);
}

TEST(ArenaTest, MemoryIsTakenWhenBytesAreWritten) {
  auto arena = Arena::Reserve({.huge_pages = false});
  ASSERT_TRUE(arena.ok());
  ASSERT_TRUE(arena->Ensure(64 << 20).ok());
  EXPECT_EQ(ResidentPages(*arena), 0u);
  arena->base()[5 << 20] = std::byte{1};
  EXPECT_EQ(ResidentPages(*arena), 1u);
}

TEST(ArenaTest, TouchedBytesAreMemoryAndKeepWhatTheyHold) {
  auto arena = Arena::Reserve({.huge_pages = false});
  ASSERT_TRUE(arena.ok());
  ASSERT_TRUE(arena->Ensure(4096).ok());
  arena->base()[7] = std::byte{9};
  arena->Touch(1 << 20);
  EXPECT_EQ(arena->bytes(), size_t{1} << 20);
  EXPECT_EQ(ResidentPages(*arena), arena->bytes() / 4096);
  EXPECT_EQ(arena->base()[7], std::byte{9});
}

TEST(ArenaTest, TouchBeyondTheLimitDoesNothing) {
  auto arena = Arena::Reserve({.limit_bytes = 1 << 20});
  ASSERT_TRUE(arena.ok());
  arena->Touch(size_t{1} << 40);
  EXPECT_EQ(arena->bytes(), 0u);
}

TEST(ArenaTest, ReleaseGivesPagesBackAndBytesReadAsZero) {
  auto arena = Arena::Reserve();
  ASSERT_TRUE(arena.ok());
  ASSERT_TRUE(arena->Ensure(8 << 20).ok());
  std::memset(arena->base(), 1, 8 << 20);
  EXPECT_GT(ResidentPages(*arena), 0u);
  arena->Release();
  EXPECT_EQ(ResidentPages(*arena), 0u);
  EXPECT_EQ(arena->base()[12345], std::byte{0});
  arena->base()[12345] = std::byte{2};
}

TEST(ArenaTest, MovingKeepsTheAddress) {
  auto arena = Arena::Reserve();
  ASSERT_TRUE(arena.ok());
  ASSERT_TRUE(arena->Ensure(4096).ok());
  std::byte* const base = arena->base();
  base[7] = std::byte{9};
  Arena moved = *std::move(arena);
  EXPECT_EQ(moved.base(), base);
  EXPECT_EQ(moved.base()[7], std::byte{9});
  Arena assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.base(), base);
}

}  // namespace
}  // namespace reprise
