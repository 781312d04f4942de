#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kX = F32({2, 3}, {1, 2, 3, 0, -1, 5});
// The columns (1, 2, 3) and (4, 0, -1).
const Tensor kY = F32({3, 2}, {1, 4, 2, 0, 3, -1});

Attributes Power(int64_t power) { return {{"power", power}}; }

TEST(DistancesTest, SumsPowersOfTheDifferences) {
  const auto squares = RunOp("reprise.Distances", {kX, kY});
  EXPECT_EQ(ShapeOf(squares), (Shape{2, 2}));
  EXPECT_THAT(Numbers(squares), ElementsAre(0, 29, 14, 53));
  EXPECT_THAT(Numbers(RunOp("reprise.Distances", {kX, kY}, Power(1))), ElementsAre(0, 9, 6, 11));
  EXPECT_THAT(Numbers(RunOp("reprise.Distances", {kX, kY}, Power(3))), ElementsAre(0, 99, 36, 281));
}

TEST(DistancesTest, OneElementIsRepeated) {
  const auto result = RunOp("reprise.Distances", {F32({2, 1}, {1, 2}), kY}, Power(1));
  EXPECT_THAT(Numbers(result), ElementsAre(3, 6, 2, 7));
  EXPECT_THAT(Numbers(RunOp("reprise.Distances", {kX, F32({1, 1}, {1})})), ElementsAre(5, 21));
}

TEST(DistancesTest, WhatDoesNotFitIsAnError) {
  const auto message = [](const Tensor& x, const Tensor& y, int64_t power) {
    return std::string(RunOp("reprise.Distances", {x, y}, Power(power)).status().message());
  };
  EXPECT_THAT(message(kX, kX, 2), HasSubstr("rows of 3 columns with vectors of 2"));
  EXPECT_THAT(message(kX, kY, 0), HasSubstr("power 0, takes from 1 to 16"));
  EXPECT_THAT(message(kX, kY, 17), HasSubstr("power 17, takes from 1 to 16"));
}

}  // namespace
}  // namespace reprise
