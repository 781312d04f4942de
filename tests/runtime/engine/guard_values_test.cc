#include "runtime/engine/guard_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace reprise {
namespace {

template <typename T>
InputTensor Of(const std::vector<T>& values) {
  return {.shape = {1, static_cast<int64_t>(values.size())}, .data = values.data()};
}

TEST(GuardValuesTest, MasksOfIntegersAreOnesAndZeros) {
  const std::vector<int64_t> usual = {1, 1, 0, 1}, negative = {1, -1, 0}, large = {1, 3, 0};
  for (const bool mask : {true, false}) {
    EXPECT_TRUE(HoldsWhatWasProved(DType::kInt64, Of(usual), 0, mask));
    EXPECT_FALSE(HoldsWhatWasProved(DType::kInt64, Of(negative), 0, mask));
    EXPECT_EQ(HoldsWhatWasProved(DType::kInt64, Of(large), 0, mask), !mask);
  }
  // Where 1 is what hides.
  EXPECT_TRUE(HoldsWhatWasProved(DType::kInt64, Of(usual), 1, true));
  const std::vector<uint8_t> bytes = {0, 1, 255};
  EXPECT_FALSE(HoldsWhatWasProved(DType::kUInt8, Of(bytes), 0, true));
  const std::vector<int8_t> small = {-128, 0};
  EXPECT_FALSE(HoldsWhatWasProved(DType::kInt8, Of(small), 0, true));
  const std::vector<int32_t> ends = {std::numeric_limits<int32_t>::max()};
  EXPECT_FALSE(HoldsWhatWasProved(DType::kInt32, Of(ends), 0, true));
  EXPECT_TRUE(HoldsWhatWasProved(DType::kInt32, Of(ends), 0, false));
}

TEST(GuardValuesTest, MasksOfFloatsHideNothingDeeperThanPadding) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> shares = {0, 0.5f, 2}, added = {0, -1e4f}, deeper = {0, -infinite};
  EXPECT_TRUE(HoldsWhatWasProved(DType::kFloat32, Of(shares), 0, true));
  EXPECT_TRUE(HoldsWhatWasProved(DType::kFloat32, Of(added), -1e4, true));
  EXPECT_FALSE(HoldsWhatWasProved(DType::kFloat32, Of(added), 0, true));
  EXPECT_FALSE(HoldsWhatWasProved(DType::kFloat32, Of(deeper), -1e4, true));
  EXPECT_TRUE(HoldsWhatWasProved(DType::kFloat32, Of(deeper), -infinite, true));
}

TEST(GuardValuesTest, SamplesMayBeAnything) {
  const std::vector<float> floats = {-1, 1e30f};
  const std::vector<int16_t> samples = {-32768, 32767};
  EXPECT_TRUE(HoldsWhatWasProved(DType::kFloat32, Of(floats), 0, false));
  EXPECT_TRUE(HoldsWhatWasProved(DType::kInt16, Of(samples), 0, false));
}

TEST(GuardValuesTest, BytesNeedNotBeAligned) {
  std::vector<char> bytes(1 + 3 * sizeof(int64_t));
  const int64_t values[] = {1, 0, -1};
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  const InputTensor tensor = {.shape = {3}, .data = bytes.data() + 1};
  EXPECT_FALSE(HoldsWhatWasProved(DType::kInt64, tensor, 0, true));
  const InputTensor first = {.shape = {2}, .data = bytes.data() + 1};
  EXPECT_TRUE(HoldsWhatWasProved(DType::kInt64, first, 0, true));
  EXPECT_TRUE(HoldsWhatWasProved(DType::kInt64, {.shape = {0}, .data = nullptr}, 0, true));
}

}  // namespace
}  // namespace reprise
