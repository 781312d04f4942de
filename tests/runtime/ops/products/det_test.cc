#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DetTest, AMatrixAndStacksOfThem) {
  EXPECT_THAT(Numbers(RunOp("Det", {F32({2, 2}, {0, 1, 2, 3})})), ElementsAre(-2));
  EXPECT_EQ(ShapeOf(RunOp("Det", {F32({2, 2}, {0, 1, 2, 3})})), Shape({}));
  const auto stack = RunOp("Det", {F32({3, 1, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 1, 1, 3, 3, 1})});
  EXPECT_EQ(ShapeOf(stack), Shape({3, 1}));
  EXPECT_THAT(Numbers(stack), ElementsAre(-2, -3, -8));
}

TEST(DetTest, RowsAreExchangedWhereAPivotIsZero) {
  const Tensor turned = F32({3, 3}, {0, 0, 2, 3, 0, 0, 0, 5, 0});
  EXPECT_THAT(Numbers(RunOp("Det", {turned})), ElementsAre(30));
  // The first pivot is tiny: without an exchange the sum would lose the rest.
  const Tensor tiny = F32({2, 2}, {1e-20f, 1, 1, 1});
  EXPECT_THAT(Numbers(RunOp("Det", {tiny})), ElementsAre(-1));
}

TEST(DetTest, SingularEmptyAndNoNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Numbers(RunOp("Det", {F32({2, 2}, {1, 2, 2, 4})})), ElementsAre(0));
  EXPECT_THAT(Numbers(RunOp("Det", {F32({2, 0, 0}, {})})), ElementsAre(1, 1));
  EXPECT_TRUE(std::isnan(Numbers(RunOp("Det", {F32({2, 2}, {nan, 1, 1, 1})}))[0]));
  EXPECT_EQ(ShapeOf(RunOp("Det", {F32({0, 2, 2}, {})})), Shape({0}));
}

TEST(DetTest, OtherFloatsAndDoublesKeepTheirDType) {
  const auto doubles =
      RunOp("Det", {Tensor::FromVector(DType::kFloat64, {1, 1}, std::vector<double>{0.1})});
  EXPECT_THAT(Numbers(doubles), ElementsAre(0.1));
  EXPECT_EQ((*doubles)[0].dtype(), DType::kFloat64);
}

TEST(DetTest, WhatHoldsNoSquareMatricesIsRefused) {
  EXPECT_THAT(ErrorOf(RunOp("Det", {F32({2, 3}, {1, 2, 3, 4, 5, 6})})),
              HasSubstr("operand [2, 3] are not square"));
  EXPECT_THAT(ErrorOf(RunOp("Det", {F32({4}, {1, 2, 3, 4})})), HasSubstr("rank 1 holds no"));
  EXPECT_THAT(ErrorOf(RunOp("Det", {I64({1, 1}, {4})})), HasSubstr("i64"));
}

}  // namespace
}  // namespace reprise
