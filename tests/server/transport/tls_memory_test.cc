#include "server/transport/tls_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <unordered_set>
#include <vector>

namespace reprise {
namespace {

constexpr size_t kRecordBytes = (16 << 10) + 332;

TEST(TlsMemoryTest, BuffersOfRecordsAloneHaveAPlaceOfTheirOwn) {
  void* const small = TakeTlsMemory(100);
  void* const record = TakeTlsMemory(kRecordBytes);
  void* const large = TakeTlsMemory(1 << 20);
  EXPECT_FALSE(IsTlsBuffer(small));
  EXPECT_TRUE(IsTlsBuffer(record));
  EXPECT_FALSE(IsTlsBuffer(large));
  EXPECT_FALSE(IsTlsBuffer(nullptr));
  for (void* block : {small, record, large}) GiveTlsMemory(block);
  GiveTlsMemory(nullptr);
}

TEST(TlsMemoryTest, BufferThatIsGivenBackIsTheNextOne) {
  void* const first = TakeTlsMemory(kRecordBytes);
  GiveTlsMemory(first);
  void* const second = TakeTlsMemory(kRecordBytes);
  EXPECT_EQ(first, second);
  GiveTlsMemory(second);
}

TEST(TlsMemoryTest, BlockKeepsItsBytesWhenItsSizeChanges) {
  char* block = static_cast<char*>(ResizeTlsMemory(nullptr, kRecordBytes));
  std::memset(block, 'a', kRecordBytes);
  for (const size_t bytes : {size_t{20} << 10, size_t{100} << 10, size_t{64}}) {
    block = static_cast<char*>(ResizeTlsMemory(block, bytes));
    EXPECT_EQ(std::memcmp(block, "aaaa", 4), 0);
    EXPECT_EQ(block[63], 'a');
  }
  EXPECT_EQ(ResizeTlsMemory(block, 0), nullptr);
}

TEST(TlsMemoryTest, MoreBuffersThanThereIsRoomForAreInTheHeap) {
  std::vector<void*> blocks(1500);
  for (void*& block : blocks) {
    block = TakeTlsMemory(kRecordBytes);
    std::memset(block, 1, kRecordBytes);
  }
  EXPECT_EQ(std::unordered_set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
  EXPECT_FALSE(IsTlsBuffer(blocks.back()));
  for (void* block : blocks) GiveTlsMemory(block);
  void* const next = TakeTlsMemory(kRecordBytes);
  EXPECT_TRUE(IsTlsBuffer(next));
  GiveTlsMemory(next);
}

TEST(TlsMemoryTest, ThreadsNeverShareABuffer) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int turn = 0; turn < 2000; ++turn) {
        char* const block = static_cast<char*>(TakeTlsMemory(kRecordBytes));
        std::memset(block, i, kRecordBytes);
        for (size_t at = 0; at < kRecordBytes; at += 1024) ASSERT_EQ(block[at], i);
        GiveTlsMemory(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace reprise
