// Rows into columns on every tier: each word at its place, and none outside written.
#include "runtime/device/cpu/simd/transpose.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

class TransposeTest : public testing::TestWithParam<Isa> {};

TEST_P(TransposeTest, MovesEveryWordAndNoOther) {
  // Any bits: as floats these are numbers, denormal ones and NaN.
  const auto word = [](int64_t i) { return static_cast<uint32_t>(i) * 2654435761u | 1u; };
  for (const int64_t rows : {1, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 21, 31, 32, 33, 49, 64}) {
    for (const int64_t columns : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 27, 48}) {
      for (const int64_t gap : {0, 1, 16}) {
        const int64_t ld_from = columns + gap, ld_to = rows + gap;
        std::vector<float> from(static_cast<size_t>(rows * ld_from));
        for (size_t i = 0; i < from.size(); ++i) from[i] = std::bit_cast<float>(word(i));
        std::vector<float> to(static_cast<size_t>(columns * ld_to), 0.0f);
        TransposeFor(GetParam())(from.data(), ld_from, rows, columns, to.data(), ld_to);
        for (int64_t j = 0; j < columns; ++j) {
          for (int64_t i = 0; i < ld_to; ++i) {
            ASSERT_EQ(std::bit_cast<uint32_t>(to[j * ld_to + i]),
                      i < rows ? word(i * ld_from + j) : 0)
                << "row " << i << ", column " << j << " of " << rows << " x " << columns << ", gap "
                << gap;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TransposeTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
