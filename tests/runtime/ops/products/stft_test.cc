#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Ramp(Shape shape) {
  std::vector<float> values;
  for (int64_t i = 1; i <= NumElements(shape); ++i) values.push_back(static_cast<float>(i));
  return F32(shape, values);
}

TEST(StftTest, FramesOfARealSignal) {
  const auto y = RunOp("STFT", {Ramp({1, 8, 1}), I64({}, {2}), std::nullopt, I64({}, {4})});
  EXPECT_EQ(ShapeOf(y), Shape({1, 3, 3, 2}));
  ExpectNear(Numbers(y), {10, 0, -2, 2, -2, 0, 18, 0, -2, 2, -2, 0, 26, 0, -2, 2, -2, 0});
  ExpectNear(Numbers(RunOp("STFT", {Ramp({1, 8}), I64({}, {2}), std::nullopt, I32({}, {4})})),
             Numbers(y));
}

// Behind a window that is shorter than a frame lie zeros; of a longer one the rest is left out.
TEST(StftTest, WindowsOfOtherSizesThanFrames) {
  const auto run = [](std::vector<float> window) {
    const auto size = static_cast<int64_t>(window.size());
    return Numbers(
        RunOp("STFT", {Ramp({1, 8, 1}), I64({}, {3}), F32({size}, window), I64({}, {4})}));
  };
  ExpectNear(run({1, 2, 1}), {8, 0, -2, -4, 0, 0, 20, 0, -2, -10, 0, 0});
  ExpectNear(run({1, 2, 1, 0}), run({1, 2, 1}));
  ExpectNear(run({1, 2, 1, 0, 9}), run({1, 2, 1}));
}

TEST(StftTest, ComplexSignalsHaveAllFrequencies) {
  const Attributes both = {{"onesided", int64_t{0}}};
  const auto y = RunOp("STFT", {F32({1, 2, 2}, {1, 2, 3, 4}), I64({}, {1})}, both);
  EXPECT_EQ(ShapeOf(y), Shape({1, 1, 2, 2}));
  ExpectNear(Numbers(y), {4, 6, -2, -2});
}

TEST(StftTest, FramesThatDoNotFitAreRefused) {
  const auto run = [](int64_t step, int64_t length) {
    return ErrorOf(
        RunOp("STFT", {Ramp({1, 8, 1}), I64({}, {step}), std::nullopt, I64({}, {length})}));
  };
  EXPECT_THAT(run(2, 9), HasSubstr("frames of 9 in steps of 2 do not fit a signal of 8 samples"));
  EXPECT_THAT(run(0, 4), HasSubstr("in steps of 0"));
  EXPECT_THAT(run(2, -1), HasSubstr("frames of -1"));
  EXPECT_THAT(ErrorOf(RunOp("STFT", {Ramp({1, 4, 2}), I64({}, {1})})),
              HasSubstr("a one-sided transform of complex numbers"));
  EXPECT_THAT(ErrorOf(RunOp("STFT", {Ramp({1, 4, 2}), I64({2}, {1, 2})})),
              HasSubstr("input 1 has the shape [2]"));
}

}  // namespace
}  // namespace reprise
