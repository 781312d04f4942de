#include "runtime/graph/extent.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(ExtentTest, AtMultiplesOfAStepRestsAreNone) {
  for (const int64_t offset : {-33, -32, -1, 0, 1, 31, 32, 40}) {
    for (const int64_t stride : {1, 2, 8, 32}) {
      const Extent extent = {.offset = offset, .stride = stride};
      const Extent plain = extent.AtMultiplesOf(32);
      EXPECT_EQ(plain.offset % stride, 0);
      for (int64_t size = 0; size <= 320; size += 32) EXPECT_EQ(plain.At(size), extent.At(size));
    }
  }
  // Nothing is known of the rest by a stride that does not divide the step.
  EXPECT_EQ((Extent{.offset = 5, .stride = 64}.AtMultiplesOf(32)), (Extent{5, 64}));
}

TEST(ExtentTest, TimesIsTheExtentOfAFinerStride) {
  const Extent coarse = {.offset = 31, .stride = 32};
  const auto doubled = coarse.Times(2, 32);
  ASSERT_TRUE(doubled.has_value());
  EXPECT_EQ(*doubled, (Extent{.offset = 1, .stride = 16}.AtMultiplesOf(32)));
  for (int64_t size = 32; size <= 320; size += 32) {
    EXPECT_EQ(doubled->At(size), 2 * coarse.At(size));
  }
  EXPECT_FALSE(coarse.Times(2, 1).has_value());
  EXPECT_FALSE(coarse.Times(3, 32).has_value());
  EXPECT_FALSE((Extent{.offset = 0, .stride = 64}.Times(2, 32)).has_value());
}

}  // namespace
}  // namespace reprise
