#include "runtime/base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace reprise {
namespace {

TEST(AlignedBufferTest, AddressIsAMultipleOf64) {
  for (size_t bytes : {1u, 63u, 64u, 65u, 100000u}) {
    AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0u);
    EXPECT_EQ(buffer.size(), bytes);
    std::memset(buffer.data(), 1, bytes);
  }
}

TEST(AlignedBufferTest, EmptyHasNoBytes) {
  EXPECT_EQ(AlignedBuffer().size(), 0u);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(AlignedBufferTest, MovingKeepsTheAddress) {
  AlignedBuffer buffer(10);
  std::byte* const data = buffer.data();
  AlignedBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
}

TEST(AlignUpTest, RoundsToTheNextMultiple) {
  EXPECT_EQ(AlignUp(0), 0u);
  EXPECT_EQ(AlignUp(1), 64u);
  EXPECT_EQ(AlignUp(64), 64u);
  EXPECT_EQ(AlignUp(65), 128u);
  EXPECT_EQ(AlignUp(5, 4096), 4096u);
}

}  // namespace
}  // namespace reprise
