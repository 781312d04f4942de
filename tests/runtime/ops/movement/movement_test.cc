#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Ints = std::vector<int64_t>;

Tensor Iota(Shape shape) {
  std::vector<float> values(NumElements(shape));
  std::iota(values.begin(), values.end(), 0.0f);
  return F32(std::move(shape), values);
}

TEST(MovementTest, TransposeEqualsIndexArithmeticForEveryPermutation) {
  const Shape shape = {3, 20, 1, 18};
  const Tensor x = Iota(shape);
  const Shape strides = Strides(shape);
  Ints perm = {0, 1, 2, 3};
  do {
    const auto result = RunOp("Transpose", {x}, {{"perm", perm}});
    ASSERT_TRUE(result.ok()) << result.status();
    const Shape out = (*result)[0].shape();
    const auto values = (*result)[0].span<float>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      int64_t rest = i, offset = 0;
      for (int d = 3; d >= 0; --d) {
        offset += rest % out[d] * strides[perm[d]];
        rest /= out[d];
      }
      ASSERT_EQ(values[i], static_cast<float>(offset));
    }
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(MovementTest, TransposeWithoutPermReverses) {
  const auto result = RunOp("Transpose", {Iota({2, 3})});
  EXPECT_THAT(Numbers(result), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(MovementTest, TransposeOfZeroSizeKeepsShape) {
  EXPECT_EQ(ShapeOf(RunOp("Transpose", {Iota({2, 0, 3})}, {{"perm", Ints{2, 0, 1}}})),
            (Shape{3, 2, 0}));
}

TEST(MovementTest, RepeatedPermAxisIsRefused) {
  EXPECT_FALSE(RunOp("Transpose", {Iota({2, 3})}, {{"perm", Ints{0, 0}}}).ok());
}

TEST(MovementTest, ConcatTakesNegativeAxisAndEmptyParts) {
  const auto result =
      RunOp("Concat", {Iota({2, 2}), Iota({2, 0}), Iota({2, 1})}, {{"axis", int64_t{-1}}});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 3}));
  EXPECT_THAT(Numbers(result), ElementsAre(0, 1, 0, 2, 3, 1));
}

TEST(MovementTest, SplitEvenlyLeavesTheLastPartSmaller) {
  const auto parts = RunOp("Split", {Iota({5})}, {{"num_outputs", int64_t{2}}}, 2);
  EXPECT_THAT(Numbers(parts, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(Numbers(parts, 1), ElementsAre(3, 4));
}

TEST(MovementTest, SplitByGivenSizes) {
  const auto parts = RunOp("Split", {Iota({2, 3}), I64({2}, {1, 2})}, {{"axis", int64_t{1}}}, 2);
  EXPECT_THAT(Numbers(parts, 0), ElementsAre(0, 3));
  EXPECT_THAT(Numbers(parts, 1), ElementsAre(1, 2, 4, 5));
  EXPECT_FALSE(RunOp("Split", {Iota({3}), I64({2}, {1, 1})}, {}, 2).ok());
}

TEST(MovementTest, SliceClampsAndStepsBackwards) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  const int64_t min = std::numeric_limits<int64_t>::min();
  const Tensor x = Iota({5});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return Numbers(
        RunOp("Slice", {x, I64({1}, {start}), I64({1}, {end}), I64({1}, {0}), I64({1}, {step})}));
  };
  EXPECT_THAT(slice(1, max, 2), ElementsAre(1, 3));
  EXPECT_THAT(slice(-1, min, -2), ElementsAre(4, 2, 0));
  EXPECT_THAT(slice(-2, max, 1), ElementsAre(3, 4));
  EXPECT_THAT(slice(3, 3, 1), ElementsAre());
  EXPECT_THAT(slice(0, max, max), ElementsAre(0));
  EXPECT_THAT(slice(4, min, min), ElementsAre(4));
  // ONNX says so: a start before the first element is the first, going down too.
  EXPECT_THAT(slice(-7, -8, -1), ElementsAre(0));
  EXPECT_THAT(slice(min, min, -3), ElementsAre(0));
  EXPECT_THAT(slice(-7, -5, -1), ElementsAre());
}

TEST(MovementTest, SliceByNegativeAxis) {
  const auto result = RunOp("Slice", {Iota({2, 3}), I64({1}, {1}), I64({1}, {3}), I64({1}, {-1})});
  EXPECT_THAT(Numbers(result), ElementsAre(1, 2, 4, 5));
}

TEST(MovementTest, ExpandBroadcastsBothWays) {
  const auto result = RunOp("Expand", {Iota({2, 1}), I64({3}, {2, 1, 2})});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 2, 2}));
  EXPECT_THAT(Numbers(result), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
}

TEST(MovementTest, TileRepeatsEachDim) {
  EXPECT_THAT(Numbers(RunOp("Tile", {Iota({1, 2}), I64({2}, {2, 2})})),
              ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_EQ(ShapeOf(RunOp("Tile", {Iota({2}), I64({1}, {0})})), (Shape{0}));
}

TEST(MovementTest, PadModes) {
  const Tensor x = Iota({3});
  const Tensor pads = I64({2}, {2, 1});
  EXPECT_THAT(Numbers(RunOp("Pad", {x, pads, F32({}, {9})})), ElementsAre(9, 9, 0, 1, 2, 9));
  EXPECT_THAT(Numbers(RunOp("Pad", {x, pads}, {{"mode", std::string("edge")}})),
              ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(Numbers(RunOp("Pad", {x, pads}, {{"mode", std::string("reflect")}})),
              ElementsAre(2, 1, 0, 1, 2, 1));
  EXPECT_THAT(Numbers(RunOp("Pad", {x, pads}, {{"mode", std::string("wrap")}})),
              ElementsAre(1, 2, 0, 1, 2, 0));
  EXPECT_THAT(Numbers(RunOp("Pad", {x, I64({2}, {-1, 0})})), ElementsAre(1, 2));
}

TEST(MovementTest, TriluKeepsATriangle) {
  EXPECT_THAT(Numbers(RunOp("Trilu", {Iota({2, 2})})), ElementsAre(0, 1, 0, 3));
  EXPECT_THAT(Numbers(RunOp("Trilu", {Iota({2, 3}), I64({}, {1})}, {{"upper", int64_t{0}}})),
              ElementsAre(0, 1, 0, 3, 4, 5));
}

TEST(ShapeOpsTest, ReshapeResolvesZeroAndMinusOne) {
  EXPECT_EQ(ShapeOf(RunOp("Reshape", {Iota({2, 3, 4}), I64({3}, {0, -1, 2})})), (Shape{2, 6, 2}));
  EXPECT_EQ(
      ShapeOf(RunOp("Reshape", {Iota({0, 3}), I64({2}, {3, 0})}, {{"allowzero", int64_t{1}}})),
      (Shape{3, 0}));
  const auto wrong = RunOp("Reshape", {Iota({2, 3}), I64({2}, {4, -1})});
  EXPECT_THAT(wrong.status().message(), HasSubstr("6 elements the shape [4, -1]"));
}

TEST(ShapeOpsTest, SqueezeUnsqueezeFlattenCountFromTheEnd) {
  EXPECT_EQ(ShapeOf(RunOp("Squeeze", {Iota({1, 2, 1}), I64({1}, {-1})})), (Shape{1, 2}));
  EXPECT_EQ(ShapeOf(RunOp("Squeeze", {Iota({1, 2, 1})})), (Shape{2}));
  EXPECT_EQ(ShapeOf(RunOp("Unsqueeze", {Iota({2}), I64({2}, {-1, 0})})), (Shape{1, 2, 1}));
  EXPECT_EQ(ShapeOf(RunOp("Flatten", {Iota({2, 3, 4})}, {{"axis", int64_t{-1}}})), (Shape{6, 4}));
  EXPECT_FALSE(RunOp("Squeeze", {Iota({2}), I64({1}, {0})}).ok());
}

TEST(ShapeOpsTest, ShapeTakesARange) {
  const Attributes range = {{"start", int64_t{-2}}, {"end", int64_t{-1}}};
  EXPECT_THAT(Numbers(RunOp("Shape", {Iota({2, 3, 4})}, range)), ElementsAre(3));
  EXPECT_THAT(Numbers(RunOp("Size", {Iota({2, 0})})), ElementsAre(0));
}

TEST(ShapeOpsTest, RangeCountsWithFractionsAndBackwards) {
  EXPECT_THAT(Numbers(RunOp("Range", {I64({}, {5}), I64({}, {0}), I64({}, {-2})})),
              ElementsAre(5, 3, 1));
  EXPECT_THAT(Numbers(RunOp("Range", {F32({}, {0}), F32({}, {1}), F32({}, {0.5f})})),
              ElementsAre(0, 0.5));
  EXPECT_FALSE(RunOp("Range", {I64({}, {0}), I64({}, {1}), I64({}, {0})}).ok());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(RunOp("Range", {F32({}, {0}), F32({}, {nan}), F32({}, {1})}).ok());
}

TEST(ShapeOpsTest, ConstantOfShapeAboveTheLimitIsRefusedBeforeAllocation) {
  const auto result = RunOp("ConstantOfShape", {I64({2}, {1 << 20, 1 << 20})});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(result.status().message(), HasSubstr("the limit is 1048576"));
  EXPECT_EQ(
      RunOp("ConstantOfShape", {I64({2}, {int64_t{1} << 40, int64_t{1} << 40})}).status().code(),
      absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reprise
