#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Count(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 1; i <= count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

TEST(Col2ImTest, BlocksAreAddedWhereTheyLie) {
  const auto image =
      RunOp("Col2Im", {F32({1, 4, 6}, Count(24)), I64({2}, {3, 4}), I64({2}, {2, 2})});
  EXPECT_EQ(ShapeOf(image), Shape({1, 1, 3, 4}));
  EXPECT_THAT(Numbers(image), ElementsAre(1, 9, 11, 9, 17, 48, 52, 33, 16, 39, 41, 24));
}

// Two rows of one channel, in one dim. The first place of the first block lies on the padding.
TEST(Col2ImTest, WhatLiesOnThePaddingIsLeftOut) {
  const auto image =
      RunOp("Col2Im", {F32({2, 2, 4}, Count(16)), I64({1}, {5}), I64({1}, {2})},
            {{"strides", std::vector<int64_t>{2}}, {"pads", std::vector<int64_t>{2, 1}}});
  EXPECT_EQ(ShapeOf(image), Shape({2, 1, 5}));
  EXPECT_THAT(Numbers(image), ElementsAre(2, 6, 3, 7, 4, 10, 14, 11, 15, 12));
}

TEST(Col2ImTest, ChannelsAndIntegers) {
  const auto image =
      RunOp("Col2Im", {U8({1, 4, 2}, {200, 1, 100, 2, 3, 4, 5, 6}), I64({1}, {3}), I64({1}, {2})});
  EXPECT_EQ(ShapeOf(image), Shape({1, 2, 3}));
  // 1 + 100 in the middle; sums of integers wrap around.
  EXPECT_THAT(Numbers(image), ElementsAre(200, 101, 2, 3, 9, 6));
}

TEST(Col2ImTest, WhatDoesNotFitIsRefused) {
  const auto run = [](Tensor x, std::vector<int64_t> image, std::vector<int64_t> block) {
    const auto size = [](const auto& list) { return Shape{static_cast<int64_t>(list.size())}; };
    return ErrorOf(RunOp("Col2Im", {x, I64(size(image), image), I64(size(block), block)}));
  };
  const Tensor x = F32({1, 4, 6}, Count(24));
  EXPECT_THAT(run(x, {3, 4}, {2}), HasSubstr("an image of 2 dims does not fit blocks of 1"));
  EXPECT_THAT(run(x, {3, 5}, {2, 2}), HasSubstr("columns [1, 4, 6] do not fit 8 blocks of [2, 2]"));
  EXPECT_THAT(run(x, {3, 4}, {3, 1}), HasSubstr("do not fit"));
  EXPECT_THAT(run(x, {1, 4}, {2, 2}), HasSubstr("larger than dim 2 of 1"));
  EXPECT_THAT(run(x, {-3, 4}, {2, 2}), HasSubstr("-3"));
  EXPECT_THAT(run(F32({4, 6}, Count(24)), {3, 4}, {2, 2}), HasSubstr("rank"));
}

}  // namespace
}  // namespace reprise
