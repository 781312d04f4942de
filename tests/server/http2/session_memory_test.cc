#include "server/http2/session_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace reprise {
namespace {

constexpr size_t kFrameBytes = (16 << 10) + 10;
constexpr uintptr_t kPageBytes = 4096;

bool IsMapped(const void* block) { return reinterpret_cast<uintptr_t>(block) % kPageBytes == 0; }

TEST(SessionMemoryTest, BuffersOfFramesAreMappedForThemselves) {
  SessionMemory memory;
  nghttp2_mem* const mem = memory.mem();
  void* const small = mem->malloc(100, mem->mem_user_data);
  void* const large = mem->malloc(kFrameBytes, mem->mem_user_data);
  EXPECT_FALSE(IsMapped(small));
  EXPECT_TRUE(IsMapped(large));
  std::memset(large, 1, kFrameBytes);
  mem->free(small, mem->mem_user_data);
  mem->free(large, mem->mem_user_data);
  mem->free(nullptr, mem->mem_user_data);
}

TEST(SessionMemoryTest, BlockKeepsItsBytesWhenItsSizeChanges) {
  SessionMemory memory;
  nghttp2_mem* const mem = memory.mem();
  void* block = mem->realloc(nullptr, 8, mem->mem_user_data);
  std::memcpy(block, "abcdefg", 8);
  block = mem->realloc(block, kFrameBytes, mem->mem_user_data);
  EXPECT_STREQ(static_cast<const char*>(block), "abcdefg");
  mem->free(block, mem->mem_user_data);
  block = mem->malloc(kFrameBytes, mem->mem_user_data);
  std::memcpy(block, "hijklmn", 8);
  block = mem->realloc(block, 2 * kFrameBytes, mem->mem_user_data);
  EXPECT_STREQ(static_cast<const char*>(block), "hijklmn");
  mem->free(block, mem->mem_user_data);
}

TEST(SessionMemoryTest, ManyLargeBlocksAreGivenOutAndTakenBack) {
  SessionMemory memory;
  nghttp2_mem* const mem = memory.mem();
  void* blocks[8];
  for (void*& block : blocks) {
    block = mem->calloc(2, kFrameBytes, mem->mem_user_data);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(std::string(static_cast<const char*>(block), 2 * kFrameBytes),
              std::string(2 * kFrameBytes, '\0'));
    void* const other = mem->malloc(kFrameBytes, mem->mem_user_data);
    std::memset(other, 1, kFrameBytes);
    mem->free(block, mem->mem_user_data);
    block = other;
  }
  for (void* block : blocks) mem->free(block, mem->mem_user_data);
}

}  // namespace
}  // namespace reprise
