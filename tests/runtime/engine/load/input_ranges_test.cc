#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/engine/load/made_up_inputs.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using Inputs = std::vector<Tensor>;
using Outputs = absl::StatusOr<std::vector<Tensor>>;

MadeUpOptions RangeOptions() { return {.batch_axis = "batch"}; }

MadeUpInput Input(const char* name, DType dtype) {
  return {
      .name = name, .dtype = dtype, .dims = {Dim{.symbol = "batch"}, Dim{.symbol = "sequence"}}};
}
MadeUpInput Ids() { return Input("input_ids", DType::kInt64); }
MadeUpInput Mask() { return Input("attention_mask", DType::kInt64); }
MadeUpInput Floats() { return Input("x", DType::kFloat32); }

// Returns a model that takes values in [low, high] of its first input and anything in the others.
TryInputs Taking(int64_t low, int64_t high, bool says = false, int64_t offset = 0) {
  return [=](const Inputs& inputs) -> Outputs {
    for (double value : inputs[0].ToDoubles()) {
      if (value >= low && value <= high) continue;
      absl::Status status = absl::InvalidArgumentError("out of range");
      if (says) SetRangePayload(status, low + offset, high + offset);
      return status;
    }
    return Inputs{};
  };
}

struct RangeCase {
  const char* name;
  DType dtype;
  int64_t low, high;  // range of the model
  InputRange expected;
};

class FindRangesTest : public testing::TestWithParam<RangeCase> {};

TEST_P(FindRangesTest, FindsBothEnds) {
  const RangeCase& c = GetParam();
  MadeUpInput ids = Ids();
  ids.dtype = c.dtype;
  int runs = 0;
  const auto ranges = FindRanges(std::vector<MadeUpInput>{ids, Mask(), Floats()},
                                 Taking(c.low, c.high), RangeOptions(), &runs);
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ((*ranges)[0].low, c.expected.low);
  EXPECT_EQ((*ranges)[0].high, c.expected.high);
  EXPECT_EQ((*ranges)[0].limited, c.expected.limited);
  EXPECT_FALSE((*ranges)[1].limited);
  EXPECT_FALSE((*ranges)[2].limited);
  EXPECT_LE(runs, 60);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, FindRangesTest,
    testing::Values(RangeCase{"Vocabulary", DType::kInt64, -30522, 30521, {-30522, 30521, true}},
                    RangeCase{"NoNegatives", DType::kInt32, 0, 30521, {0, 30521, true}},
                    RangeCase{"TwoTypes", DType::kInt64, -2, 1, {-2, 1, true}},
                    RangeCase{"OnlyZero", DType::kInt64, 0, 0, {0, 0, true}},
                    RangeCase{"FromOne", DType::kInt64, 1, 5, {1, 5, true}},
                    RangeCase{"ShiftedIndex", DType::kInt64, -102, 97, {-102, 97, true}},
                    RangeCase{"Anything", DType::kInt64, INT64_MIN, INT64_MAX, {0, 1, false}},
                    RangeCase{"AnyByte", DType::kInt8, -128, 127, {0, 1, false}},
                    RangeCase{"SmallUnsigned", DType::kUInt8, 0, 9, {0, 9, true}},
                    RangeCase{"AnyUnsigned", DType::kUInt32, 0, INT64_MAX, {0, 1, false}},
                    RangeCase{
                        "PositiveWithoutEnd", DType::kInt64, 0, INT64_MAX, {0, 1 << 20, true}}),
    [](const auto& info) { return info.param.name; });

TEST(FindRangesTest, ARangeThatTheRunnerNamesSavesRuns) {
  const std::vector<MadeUpInput> inputs = {Ids(), Mask()};
  int silent = 0, telling = 0;
  ASSERT_TRUE(FindRanges(inputs, Taking(-30522, 30521), RangeOptions(), &silent).ok());
  const auto ranges = FindRanges(inputs, Taking(-30522, 30521, true), RangeOptions(), &telling);
  ASSERT_TRUE(ranges.ok());
  EXPECT_EQ((*ranges)[0].low, -30522);
  EXPECT_EQ((*ranges)[0].high, 30521);
  EXPECT_LE(telling, 5);
  EXPECT_LT(telling, silent);
}

TEST(FindRangesTest, AWrongRangeInTheErrorIsNotBelieved) {
  // The kernel looks up id + 2, so the id in its error is not the one that the input holds.
  const auto ranges =
      FindRanges(std::vector<MadeUpInput>{Ids()}, Taking(-102, 97, true, 2), RangeOptions());
  ASSERT_TRUE(ranges.ok());
  EXPECT_EQ((*ranges)[0].low, -102);
  EXPECT_EQ((*ranges)[0].high, 97);
}

TEST(FindRangesTest, AModelThatTakesNothingIsAnErrorInItsWords) {
  const TryInputs runner = [](const Inputs&) -> Outputs {
    return absl::UnimplementedError("op Wonder is unknown");
  };
  const auto ranges = FindRanges(std::vector<MadeUpInput>{Ids()}, runner, RangeOptions());
  EXPECT_EQ(ranges.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(ranges.status().message()), HasSubstr("Wonder"));
}

TEST(FindRangesTest, ASizeThatTheModelTakesIsFound) {
  const TryInputs runner = [](const Inputs& inputs) -> Outputs {
    if (inputs[0].shape()[1] % 32 != 0) return absl::InvalidArgumentError("not divisible");
    return Inputs{};
  };
  EXPECT_TRUE(FindRanges(std::vector<MadeUpInput>{Ids()}, runner, RangeOptions()).ok());
}

TEST(RangePayloadTest, IsReadBackAndAbsentOtherwise) {
  absl::Status status = absl::InvalidArgumentError("x");
  EXPECT_FALSE(RangePayload(status).has_value());
  SetRangePayload(status, -5, 7);
  ASSERT_TRUE(RangePayload(status).has_value());
  EXPECT_EQ(RangePayload(status)->low, -5);
  EXPECT_EQ(RangePayload(status)->high, 7);
}

}  // namespace
}  // namespace reprise
