#include "runtime/device/cpu/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
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

TEST_P(HalfTest, EveryHalfWidensExactlyAndComesBack) {
  const std::vector<uint16_t> all = AllHalves();
  for (const DType half : kHalves) {
    const HalfKernels& kernels = HalfKernelsFor(GetParam(), half);
    std::vector<float> wide(kAll);
    std::vector<uint16_t> back(kAll);
    kernels.widen(all.data(), wide.data(), kAll);
    kernels.narrow(wide.data(), back.data(), kAll);
    for (int64_t i = 0; i < kAll; ++i) {
      const float want = WidenOne(half, all[i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        ASSERT_TRUE(std::isnan(WidenOne(half, back[i]))) << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(want)) << i;
      ASSERT_EQ(back[i], all[i]);
    }
  }
}

TEST_P(HalfTest, FloatsNarrowToTheNearestWithTiesToEven) {
  std::mt19937 random(1);
  std::vector<float> x;
  for (int i = 0; i < 200000; ++i) x.push_back(std::bit_cast<float>(uint32_t(random())));
  // Around what either half holds, and halfway between two of them.
  for (int64_t bits = 0; bits < kAll; ++bits) {
    for (const DType half : kHalves) {
      const float value = WidenOne(half, static_cast<uint16_t>(bits));
      const float next = WidenOne(half, static_cast<uint16_t>(bits + 1));
      x.push_back(value);
      x.push_back((value + next) / 2);
      x.push_back(std::nextafter((value + next) / 2, next));
    }
  }
  for (const float edge : {65504.0f, 65519.996f, 65520.0f, 70000.0f, -1e30f, 0.0f, -0.0f,
                           std::numeric_limits<float>::infinity(), 3.4e38f, 1e-45f}) {
    x.push_back(edge);
  }
  for (const DType half : kHalves) {
    std::vector<uint16_t> y(x.size());
    HalfKernelsFor(GetParam(), half).narrow(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(WidenOne(half, y[i]))) << x[i];
      } else {
        ASSERT_EQ(y[i], NarrowOne(half, x[i])) << x[i];
      }
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
      std::vector<uint16_t> narrow(count + 1, 77);
      kernels.widen(file.data() + 1, wide.data(), count);
      kernels.add(file.data() + 1, sum.data(), count);
      kernels.narrow(wide.data(), narrow.data(), count);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(wide[i], WidenOne(half, stored[i]));
        EXPECT_EQ(sum[i], 5.0f + wide[i]);
        EXPECT_EQ(narrow[i], stored[i]);
      }
      EXPECT_EQ(wide[count], 5.0f);
      EXPECT_EQ(sum[count], 5.0f);
      EXPECT_EQ(narrow[count], 77);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, HalfTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
