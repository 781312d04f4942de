#include "runtime/device/cpu/simd/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/graph/tensor.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

constexpr DType kHalves[] = {DType::kFloat16, DType::kBFloat16};
constexpr int64_t kAll = 1 << 16;

float WidenOne(DType half, uint16_t bits) {
  return half == DType::kFloat16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
}

uint16_t NarrowOne(DType half, float value) {
  return half == DType::kFloat16 ? FloatToHalf(value) : FloatToBFloat16(value);
}

std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> all(kAll);
  for (int64_t i = 0; i < kAll; ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

class HalfTest : public testing::TestWithParam<Isa> {};

TEST_P(HalfTest, EveryHalfWidensExactly) {
  const std::vector<uint16_t> all = AllHalves();
  for (const DType half : kHalves) {
    const HalfKernels& kernels = HalfKernelsFor(GetParam(), half);
    std::vector<float> wide(kAll);
    kernels.widen(all.data(), wide.data(), kAll);
    for (int64_t i = 0; i < kAll; ++i) {
      const float want = WidenOne(half, all[i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(want)) << i;
    }
  }
}

TEST_P(HalfTest, AnyCountAtAnyAddressStaysInside) {
  for (const DType half : kHalves) {
    const HalfKernels& kernels = HalfKernelsFor(GetParam(), half);
    for (const int64_t count : {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 67}) {
      std::vector<uint16_t> stored(count);
      for (int64_t i = 0; i < count; ++i) {
        stored[i] = NarrowOne(half, 0.37f * static_cast<float>(i) - 3);
      }
      std::vector<std::byte> file(1 + 2 * count);  // one byte off
      if (count > 0) std::memcpy(file.data() + 1, stored.data(), 2 * count);
      std::vector<float> wide(count + 1, 5.0f), sum(count + 1, 5.0f);
      kernels.widen(file.data() + 1, wide.data(), count);
      kernels.add(file.data() + 1, sum.data(), count);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(wide[i], WidenOne(half, stored[i]));
        EXPECT_EQ(sum[i], 5.0f + wide[i]);
      }
      EXPECT_EQ(wide[count], 5.0f);
      EXPECT_EQ(sum[count], 5.0f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, HalfTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
