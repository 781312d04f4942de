#include "runtime/device/cpu/simd/weight_memory.h"

#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace reprise::cpu {
namespace {

TEST(WeightMemoryTest, BlocksAreAlignedAndDoNotOverlap) {
  WeightMemory memory;
  std::vector<std::shared_ptr<std::byte>> blocks;
  const size_t sizes[] = {0, 1, 63, 64, 65, 100000, size_t{5} << 20};
  for (size_t size : sizes) {
    blocks.push_back(memory.Allocate(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back().get()) % 64, 0u);
    std::memset(blocks.back().get(), static_cast<int>(blocks.size()), size);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t b = 0; b < sizes[i]; b += 61) {
      ASSERT_EQ(blocks[i].get()[b], static_cast<std::byte>(i + 1)) << "block " << i;
    }
  }
}

TEST(WeightMemoryTest, BlockLargerThanAChunkGetsItsOwn) {
  WeightMemory memory;
  const auto small = memory.Allocate(10);
  const size_t bytes = size_t{40} << 20;
  const auto large = memory.Allocate(bytes);
  large.get()[0] = large.get()[bytes - 1] = std::byte{7};
  const auto after = memory.Allocate(10);
  after.get()[0] = std::byte{1};
  EXPECT_EQ(large.get()[bytes - 1], std::byte{7});
}

TEST(WeightMemoryTest, BlockOutlivesTheMemoryAndItsMates) {
  std::shared_ptr<std::byte> kept;
  {
    WeightMemory memory;
    const auto mate = memory.Allocate(100);
    kept = memory.Allocate(100);
    kept.get()[99] = std::byte{9};
  }
  EXPECT_EQ(kept.get()[99], std::byte{9});
}

TEST(WeightMemoryTest, ThreadsGetBlocksOfTheirOwn) {
  WeightMemory memory;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::shared_ptr<std::byte>> blocks;
      for (int i = 0; i < 100; ++i) {
        blocks.push_back(memory.Allocate(200));
        std::memset(blocks.back().get(), t, 200);
      }
      for (const auto& block : blocks) {
        for (int b = 0; b < 200; ++b) wrong[t] += block.get()[b] != static_cast<std::byte>(t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace reprise::cpu
