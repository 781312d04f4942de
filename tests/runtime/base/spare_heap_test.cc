#include "runtime/base/spare_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace reprise {
namespace {

void* TakeAny(size_t bytes) { return TakeSpare(bytes, kSpareHeapBytes); }

TEST(SpareHeapTest, BlocksAreApartAlignedAndGivenBack) {
  const size_t before = SpareBytesTaken();
  std::mt19937 random(1);
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (int i = 0; i < 20000; ++i) {
    if (blocks.size() > 200 || (!blocks.empty() && random() % 2 == 0)) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto [block, bytes] = blocks.back();
      const auto mark = static_cast<unsigned char>(bytes);
      EXPECT_TRUE(std::all_of(block, block + bytes, [=](unsigned char b) { return b == mark; }));
      ASSERT_TRUE(GiveSpare(block));
      blocks.pop_back();
      continue;
    }
    const size_t bytes = random() % 4 == 0 ? random() % kMostSpareBytes : random() % 200;
    auto* const block = static_cast<unsigned char*>(TakeAny(bytes));
    if (block == nullptr) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignof(std::max_align_t), 0u);
    std::memset(block, static_cast<int>(bytes & 0xff), bytes);
    blocks.emplace_back(block, bytes);
  }
  for (const auto& [block, bytes] : blocks) ASSERT_TRUE(GiveSpare(block));
  EXPECT_EQ(SpareBytesTaken(), before);
}

// Neighbours that were given back are one block again, whatever the order.
TEST(SpareHeapTest, AllOfItCanBeTakenAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks;
    while (void* const block = TakeAny(round == 0 ? 100 : kMostSpareBytes)) blocks.push_back(block);
    EXPECT_GE(blocks.size() * kMostSpareBytes, kSpareHeapBytes * 9 / 10);
    EXPECT_TRUE(SpareHeapIsLow());
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(2));
    for (void* block : blocks) ASSERT_TRUE(GiveSpare(block));
    EXPECT_FALSE(SpareHeapIsLow());
  }
}

TEST(SpareHeapTest, LargeBlocksAndTheShareOfOthersAreRefused) {
  EXPECT_EQ(TakeSpare(kMostSpareBytes + 1, kSpareHeapBytes), nullptr);
  EXPECT_EQ(TakeSpare(1, 0), nullptr);
  std::vector<void*> half;
  while (void* const block = TakeSpare(1000, kSpareHeapBytes / 2)) half.push_back(block);
  EXPECT_LE(SpareBytesTaken(), kSpareHeapBytes / 2);
  void* const other = TakeAny(1000);
  EXPECT_NE(other, nullptr);
  half.push_back(other);
  for (void* block : half) ASSERT_TRUE(GiveSpare(block));
}

TEST(SpareHeapTest, BlocksOfOthersAreLeftAlone) {
  int local = 0;
  EXPECT_FALSE(GiveSpare(&local));
  EXPECT_FALSE(GiveSpare(nullptr));
}

TEST(SpareScopeTest, HoldsForItsThreadWhileItLives) {
  EXPECT_EQ(SpareScope::most(), 0u);
  {
    const SpareScope outer(100);
    {
      const SpareScope inner(7);
      EXPECT_EQ(SpareScope::most(), 7u);
    }
    EXPECT_EQ(SpareScope::most(), 100u);
    std::thread([] { EXPECT_EQ(SpareScope::most(), 0u); }).join();
  }
  EXPECT_EQ(SpareScope::most(), 0u);
}

}  // namespace
}  // namespace reprise
