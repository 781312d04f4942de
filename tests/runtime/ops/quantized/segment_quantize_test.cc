// Quantising by the range of a request: each gets the result of DynamicQuantizeLinear over it
// alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

constexpr char kSegmentQuantize[] = "reprise.SegmentDynamicQuantizeLinear";

Tensor Rows(const Tensor& from, int64_t begin, int64_t end) {
  Shape shape = from.shape();
  const size_t row = from.bytes() / shape[0];
  shape[0] = end - begin;
  return Tensor::Make(from.dtype(), shape, [&](void* data) {
    std::memcpy(data, static_cast<const char*>(from.data()) + begin * row, (end - begin) * row);
  });
}

// Checks each segment of x [tokens, width...], whose sizes differ by orders of magnitude.
void ExpectEachAsAlone(const Shape& rest, const std::vector<int32_t>& bounds) {
  SCOPED_TRACE(ShapeToString(rest));
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const int64_t tokens = 40, width = NumElements(rest);
  std::vector<float> values;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < width; ++i) {
      values.push_back(normal(random) * static_cast<float>(t * t + 1) - static_cast<float>(t % 3));
    }
  }
  // Behind the last segment, where nothing counts.
  for (int64_t i = bounds.back() * width; i < tokens * width; ++i) values[i] = 1e30f;
  Shape shape = rest;
  shape.insert(shape.begin(), tokens);
  const Tensor x = F32(shape, values);
  const auto together =
      RunOp(kSegmentQuantize, {x, I32({static_cast<int64_t>(bounds.size())}, bounds)}, {}, 3);
  ASSERT_TRUE(together.ok()) << together.status();
  Shape lines = shape;
  lines.back() = 1;
  EXPECT_EQ((*together)[1].shape(), lines);
  EXPECT_EQ((*together)[2].shape(), lines);
  for (size_t s = 0; s + 1 < bounds.size(); ++s) {
    SCOPED_TRACE(s);
    if (bounds[s] == bounds[s + 1]) continue;
    const auto alone = RunOp("DynamicQuantizeLinear", {Rows(x, bounds[s], bounds[s + 1])}, {}, 3);
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(Rows((*together)[0], bounds[s], bounds[s + 1]).ToDoubles(), (*alone)[0].ToDoubles());
    for (size_t output : {1, 2}) {
      EXPECT_THAT(Rows((*together)[output], bounds[s], bounds[s + 1]).ToDoubles(),
                  testing::Each((*alone)[output].ToDoubles()[0]));
    }
  }
}

TEST(SegmentQuantizeTest, EveryRequestHasTheRangeOfItsOwnTokens) {
  for (const Shape& rest : {Shape{8}, Shape{1}, Shape{3, 5}}) {
    ExpectEachAsAlone(rest, {0, 7, 7, 8, 30, 30});
    ExpectEachAsAlone(rest, {0, 40});
  }
}

TEST(SegmentQuantizeTest, WithoutSegmentsAllIsOneRequest) {
  const Tensor x = F32({2, 3}, {0, 2, -3, 1, std::numeric_limits<float>::quiet_NaN(), 2});
  const auto by_request = RunOp(kSegmentQuantize, {x}, {}, 3),
             plain = RunOp("DynamicQuantizeLinear", {x}, {}, 3);
  EXPECT_EQ(Numbers(by_request, 0), Numbers(plain, 0));
  EXPECT_THAT(Numbers(by_request, 1), testing::Each(Numbers(plain, 1)[0]));
  EXPECT_EQ(ShapeOf(by_request, 1), (Shape{2, 1}));
}

TEST(SegmentQuantizeTest, ATensorWithoutRowsIsRefused) {
  EXPECT_FALSE(RunOp(kSegmentQuantize, {F32({3}, {1, 2, 3})}, {}, 3).ok());
}

// Zero points of lines, as it makes them.
TEST(SegmentQuantizeTest, IntegerProductsTakeAZeroPointForEachLine) {
  const Tensor a = U8({2, 2, 2}, {4, 6, 1, 2, 9, 9, 0, 5}), b = U8({2, 1}, {3, 5});
  const auto result = RunOp("MatMulInteger", {a, b, U8({2, 2, 1}, {0, 1, 2, 3})});
  EXPECT_THAT(Numbers(result), testing::ElementsAre(42, 5, 56, 1));
  EXPECT_FALSE(RunOp("MatMulInteger", {a, b, U8({3, 1, 1}, {0, 1, 2})}).ok());
}

}  // namespace
}  // namespace reprise
