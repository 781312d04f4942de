#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attributes At(int64_t count) {
  std::vector<int64_t> from;
  for (int64_t i = 1; i < count; ++i) from.push_back(i);
  return {{"count", count}, {"last", count - 1}, {"from", from}};
}

TEST(SelectItemTest, PositionsCountFromBothEnds) {
  const OptionalTensors items = {F32({1}, {1}), F32({2}, {2, 3}), F32({}, {4})};
  const auto at = [&](int64_t position) {
    OptionalTensors inputs = items;
    inputs.insert(inputs.begin(), I64({}, {position}));
    return RunOp("reprise.SelectItem", inputs, At(3));
  };
  EXPECT_THAT(Numbers(at(0)), ElementsAre(1));
  EXPECT_THAT(Numbers(at(-2)), ElementsAre(2, 3));
  EXPECT_EQ(ShapeOf(at(2)), Shape({}));
  EXPECT_THAT(ErrorOf(at(3)), HasSubstr("position 3 lies outside a sequence of 3 tensors"));
  EXPECT_THAT(ErrorOf(at(-4)), HasSubstr("position -4 lies outside"));
  EXPECT_THAT(ErrorOf(at(std::numeric_limits<int64_t>::min())), HasSubstr("lies outside"));
}

TEST(SelectItemTest, ItemsOfSeveralDTypesAreRefused) {
  EXPECT_THAT(
      ErrorOf(RunOp("reprise.SelectItem", {I64({}, {0}), F32({}, {1}), I64({}, {2})}, At(2))),
      HasSubstr("i64"));
}

}  // namespace
}  // namespace reprise
