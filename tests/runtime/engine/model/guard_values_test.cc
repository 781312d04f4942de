#include "runtime/engine/model/guard_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
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
  // A mask whose 1 hides.
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

TEST(GuardValuesTest, MasksOfEveryTypeAreLookedAt) {
  const std::vector<uint64_t> counts = {0, 1, uint64_t{1} << 63}, ones = {0, 1};
  EXPECT_FALSE(HoldsWhatWasProved(DType::kUInt64, Of(counts), 0, true));
  EXPECT_TRUE(HoldsWhatWasProved(DType::kUInt64, Of(ones), 0, true));
  const std::vector<uint16_t> halves = {0x3c00, 0xfc00};  // 1, and infinity below zero
  EXPECT_FALSE(HoldsWhatWasProved(DType::kFloat16, Of(halves), -1e4, true));
  EXPECT_FALSE(HoldsWhatWasProved(DType::kUInt16, Of(halves), 0, true));
}

TEST(GuardValuesTest, WhatHidesLeavesEveryQueryItsPlaces) {
  const float infinite = std::numeric_limits<float>::infinity();
  const auto hiding = [](CountingPlaces places, const std::vector<float>& values,
                         std::optional<double> fill = std::nullopt) {
    const InputTensor tensor = {.shape = {1, 2, 3}, .data = values.data()};
    return HidingOf(places, fill, DType::kFloat32, tensor, std::vector<size_t>{2});
  };
  EXPECT_EQ(hiding(CountingPlaces::kOne, {0, -5, 1, -999, 0, 1e30f}), Hiding::kNothing);
  EXPECT_EQ(hiding(CountingPlaces::kOne, {0, -1e9f, 1, 0, 0, -infinite}), Hiding::kSome);
  EXPECT_EQ(hiding(CountingPlaces::kOne, {0, 0, 0, -1e9f, -1e4f, -infinite}), Hiding::kTooMuch);
  EXPECT_EQ(hiding(CountingPlaces::kFirst, {0, -1e9f, 0, -1e9f, 0, 0}), Hiding::kTooMuch);
  EXPECT_EQ(hiding(CountingPlaces::kAll, {0, 0, 0, 0, 0, -1e9f}), Hiding::kTooMuch);
  EXPECT_EQ(hiding(CountingPlaces::kOne, {0, std::nanf(""), 0, 1, 1, 1}), Hiding::kSome);
  // A guard hides with the value that padding holds.
  EXPECT_EQ(hiding(CountingPlaces::kOne, {1, 1, 1, 1, 1, 0}, 0), Hiding::kSome);
  EXPECT_EQ(hiding(CountingPlaces::kOne, {1, 1, 1, 0, 0, 0}, 0), Hiding::kTooMuch);
  const std::vector<uint8_t> keys = {1, 0};
  const InputTensor mask = {.shape = {2}, .data = keys.data()};
  EXPECT_EQ(HidingOf(CountingPlaces::kOne, 0, DType::kBool, mask, std::vector<size_t>{0}),
            Hiding::kSome);
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
