// Indices of the largest and smallest against the plain loop, among equals and NaN.
#include "runtime/device/cpu/elementwise/arg_extremes.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "runtime/ops/reduce/reduce.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

constexpr PlaceOf kAll[] = {{true, false}, {true, true}, {false, false}, {false, true}};

// Few different numbers, so that the best is there more than once; one in nine is none.
std::vector<float> RepeatingFloats(int64_t count, bool with_nan, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) {
    x = static_cast<float>(static_cast<int>(random() % 7) - 3);
    if (with_nan && random() % 9 == 0) x = std::numeric_limits<float>::quiet_NaN();
  }
  return numbers;
}

class PlacesTest : public testing::TestWithParam<Isa> {
 protected:
  const PlaceKernels& kernels() const { return PlaceKernelsFor(GetParam()); }
};

TEST_P(PlacesTest, PlacesInRowsAreThoseOfThePlainLoop) {
  constexpr int64_t kRows = 7;
  for (const int64_t size : {1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 127, 128, 129, 150, 300}) {
    for (const bool with_nan : {false, true}) {
      const std::vector<float> x =
          RepeatingFloats(kRows * size, with_nan, static_cast<uint32_t>(size));
      for (const PlaceOf of : kAll) {
        std::vector<int64_t> places(kRows, -1);
        kernels().rows(of, x.data(), size, 1, kRows, places.data());
        EXPECT_EQ(places[0], -1);
        for (int64_t row = 1; row < kRows; ++row) {
          EXPECT_EQ(places[row],
                    ops::PlaceOfBest(x.data() + row * size, size, 1, of.largest, of.last))
              << "row " << row << " of " << size << (of.largest ? " largest" : " smallest")
              << (of.last ? " last" : " first") << (with_nan ? " with NaN" : "");
        }
      }
    }
  }
}

TEST_P(PlacesTest, PlacesInColumnsAreThoseOfThePlainLoop) {
  for (const int64_t rows : {1, 2, 21}) {
    for (const int64_t size : {1, 3, 8, 17, 63, 64, 65, 130}) {
      const int64_t stride = size + 3;
      for (const bool with_nan : {false, true}) {
        // Nothing after the last column of the last row.
        std::vector<float> x = RepeatingFloats((rows - 1) * stride + size, with_nan,
                                               static_cast<uint32_t>(rows + size));
        x.shrink_to_fit();
        for (const PlaceOf of : kAll) {
          std::vector<int64_t> places(static_cast<size_t>(size) + 1, -1);
          kernels().columns(of, x.data(), stride, rows, size, places.data());
          EXPECT_EQ(places[size], -1);
          for (int64_t column = 0; column < size; ++column) {
            EXPECT_EQ(places[column],
                      ops::PlaceOfBest(x.data() + column, rows, stride, of.largest, of.last))
                << "column " << column << " of " << size << ", " << rows << " rows"
                << (of.largest ? " largest" : " smallest") << (of.last ? " last" : " first")
                << (with_nan ? " with NaN" : "");
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, PlacesTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
