#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Attributes kTwos = {{"kernel_shape", std::vector<int64_t>{2, 2}},
                          {"strides", std::vector<int64_t>{2, 2}}};

TEST(MaxUnpoolTest, ElementsGoWhereTheyWere) {
  const auto y = RunOp("MaxUnpool",
                       {F32({1, 1, 2, 2}, {1, 2, 3, 4}), I64({1, 1, 2, 2}, {5, 7, 13, 15})}, kTwos);
  EXPECT_EQ(ShapeOf(y), Shape({1, 1, 4, 4}));
  EXPECT_THAT(Numbers(y), ElementsAre(0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4));
}

// Places count over rows and channels, as MaxPool has them.
TEST(MaxUnpoolTest, UndoesMaxPoolOverTheWholeBatch) {
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<float>(i * 7 % 32 + 1));
  const auto pooled = RunOp("MaxPool", {F32({2, 1, 4, 4}, values)}, kTwos, 2);
  const auto y = RunOp("MaxUnpool", {(*pooled)[0], (*pooled)[1]}, kTwos);
  const std::vector<double> back = Numbers(y), largest = Numbers(pooled);
  ASSERT_EQ(back.size(), 32u);
  double sum = 0, wanted = 0;
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_TRUE(back[i] == 0 || back[i] == values[i]) << i;
    sum += back[i];
  }
  for (double one : largest) wanted += one;
  EXPECT_EQ(sum, wanted);
}

// As the ONNX suite has it: indices count in the area of the windows, zeros come after it.
TEST(MaxUnpoolTest, ALargerOutputShapeHasZerosBehind) {
  const auto y =
      RunOp("MaxUnpool",
            {F32({1, 1, 1, 2}, {1, 2}), I64({1, 1, 1, 2}, {1, 6}), I64({4}, {1, 1, 3, 5})}, kTwos);
  EXPECT_EQ(ShapeOf(y), Shape({1, 1, 3, 5}));
  EXPECT_THAT(Numbers(y), ElementsAre(0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0));
}

TEST(MaxUnpoolTest, APlaceOutsideIsAnErrorOfTheData) {
  for (const int64_t place : {int64_t{-1}, int64_t{16}, std::numeric_limits<int64_t>::min()}) {
    const auto y =
        RunOp("MaxUnpool", {F32({1, 1, 2, 2}, {1, 2, 3, 4}), I64({1, 1, 2, 2}, {5, place, 13, 15})},
              kTwos);
    EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(ErrorOf(y), HasSubstr(std::to_string(place)));
  }
}

TEST(MaxUnpoolTest, WhatDoesNotFitIsRefused) {
  const Tensor x = F32({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor places = I64({1, 1, 2, 2}, {0, 1, 2, 3});
  EXPECT_THAT(ErrorOf(RunOp("MaxUnpool", {x, I64({1, 1, 4}, {0, 1, 2, 3})}, kTwos)),
              HasSubstr("places [1, 1, 4] for elements [1, 1, 2, 2]"));
  EXPECT_THAT(ErrorOf(RunOp("MaxUnpool", {x, places, I64({4}, {1, 1, 3, 4})}, kTwos)),
              HasSubstr("output_shape [1, 1, 3, 4] does not hold [1, 1, 4, 4]"));
  EXPECT_THAT(ErrorOf(RunOp("MaxUnpool", {x, places})), HasSubstr("attributes do not fit"));
}

}  // namespace
}  // namespace reprise
