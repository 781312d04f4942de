#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Pointwise;

const Tensor kX = F32({2, 3}, {1, 2, 3, -4, 5, 6});
const Attributes kDrop = {{"keepdims", int64_t{0}}};

TEST(ReduceTest, NegativeAxisAndKeptDims) {
  const auto result = RunOp("ReduceSum", {kX, I64({1}, {-1})});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 1}));
  EXPECT_THAT(Numbers(result), ElementsAre(6, 7));
}

TEST(ReduceTest, OuterAxisDropped) {
  const auto result = RunOp("ReduceMean", {kX, I64({1}, {0})}, kDrop);
  EXPECT_EQ(ShapeOf(result), (Shape{3}));
  EXPECT_THAT(Numbers(result), ElementsAre(-1.5, 3.5, 4.5));
}

TEST(ReduceTest, SeveralAxesWithOneKeptBetween) {
  const auto result =
      RunOp("ReduceSum", {F32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), I64({2}, {0, 2})}, kDrop);
  EXPECT_THAT(Numbers(result), ElementsAre(14, 22));
}

TEST(ReduceTest, NoAxesMeanAllUnlessNoop) {
  EXPECT_THAT(Numbers(RunOp("ReduceMax", {kX}, kDrop)), ElementsAre(6));
  EXPECT_EQ(ShapeOf(RunOp("ReduceMax", {kX}, {{"noop_with_empty_axes", int64_t{1}}})),
            (Shape{2, 3}));
}

TEST(ReduceTest, EmptySetsGiveTheNeutralElement) {
  const Tensor empty = F32({2, 0}, {});
  const Tensor axis = I64({1}, {1});
  EXPECT_THAT(Numbers(RunOp("ReduceSum", {empty, axis})), ElementsAre(0, 0));
  EXPECT_THAT(Numbers(RunOp("ReduceProd", {empty, axis})), ElementsAre(1, 1));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Numbers(RunOp("ReduceMax", {empty, axis})), ElementsAre(-inf, -inf));
  EXPECT_THAT(Numbers(RunOp("ReduceMin", {empty, axis})), ElementsAre(inf, inf));
}

TEST(ReduceTest, NormsAndLogarithms) {
  const Tensor x = F32({2}, {3, -4});
  EXPECT_THAT(Numbers(RunOp("ReduceL1", {x}, kDrop)), ElementsAre(7));
  EXPECT_THAT(Numbers(RunOp("ReduceL2", {x}, kDrop)), ElementsAre(5));
  EXPECT_THAT(Numbers(RunOp("ReduceSumSquare", {x}, kDrop)), ElementsAre(25));
  EXPECT_THAT(Numbers(RunOp("ReduceLogSumExp", {F32({2}, {1000, 1000})}, kDrop)),
              Pointwise(DoubleNear(1e-3), {1000.6931}));
}

TEST(ReduceTest, IntegersStayIntegers) {
  const auto mean = RunOp("ReduceMean", {I64({2}, {-3, 0})}, kDrop);
  EXPECT_THAT(Numbers(mean), ElementsAre(-1));
  EXPECT_EQ((*mean)[0].dtype(), DType::kInt64);
}

TEST(ArgTest, TiesGoToTheFirstUnlessTheLastIsAskedFor) {
  const Tensor x = I32({4}, {1, 3, 3, 0});
  EXPECT_THAT(Numbers(RunOp("ArgMax", {x})), ElementsAre(1));
  EXPECT_THAT(Numbers(RunOp("ArgMax", {x}, {{"select_last_index", int64_t{1}}})), ElementsAre(2));
  EXPECT_THAT(Numbers(RunOp("ArgMin", {kX}, {{"axis", int64_t{-1}}, {"keepdims", int64_t{0}}})),
              ElementsAre(0, 0));
}

TEST(TopKTest, SortedWithIndices) {
  const auto largest = RunOp("TopK", {kX, I64({1}, {2})}, {}, 2);
  EXPECT_THAT(Numbers(largest, 0), ElementsAre(3, 2, 6, 5));
  EXPECT_THAT(Numbers(largest, 1), ElementsAre(2, 1, 2, 1));
  const auto smallest = RunOp("TopK", {kX, I64({1}, {1})}, {{"largest", int64_t{0}}}, 2);
  EXPECT_THAT(Numbers(smallest, 0), ElementsAre(1, -4));
  EXPECT_FALSE(RunOp("TopK", {kX, I64({1}, {4})}, {}, 2).ok());
}

TEST(CumSumTest, ExclusiveAndReverse) {
  const Tensor x = F32({3}, {1, 2, 3});
  const Tensor axis = I64({}, {-1});
  EXPECT_THAT(Numbers(RunOp("CumSum", {x, axis})), ElementsAre(1, 3, 6));
  EXPECT_THAT(
      Numbers(RunOp("CumSum", {x, axis}, {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}})),
      ElementsAre(5, 3, 0));
}

// Many neighbours are summed side by side, few one after the other.
TEST(CumSumTest, EveryNeighbourHasItsOwnSum) {
  constexpr int64_t kOuter = 2, kSize = 5;
  for (const int64_t inner : {1, 3, 7, 8, 19}) {
    std::vector<float> values(kOuter * kSize * inner);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 17);
    const Tensor x = F32({kOuter, kSize, inner}, values);
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        std::vector<double> wanted(values.size());
        for (int64_t at = 0; at < x.num_elements(); ++at) {
          const int64_t own = at / inner % kSize;
          for (int64_t k = 0; k < kSize; ++k) {
            const bool before = reverse ? k > own : k < own;
            if (before || (k == own && !exclusive)) wanted[at] += values[at + (k - own) * inner];
          }
        }
        EXPECT_THAT(
            Numbers(RunOp("CumSum", {x, I64({}, {1})},
                          {{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}})),
            ElementsAreArray(wanted))
            << inner << " neighbours";
      }
    }
  }
}

}  // namespace
}  // namespace reprise
