#include "runtime/engine/model/length_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace reprise {
namespace {

template <typename T>
InputTensor Of(const std::vector<T>& values) {
  return {.shape = {1, static_cast<int64_t>(values.size())}, .data = values.data()};
}

TEST(LengthValuesTest, LengthsLieInsideTheRequest) {
  EXPECT_TRUE(AllLengthsUpTo(4, DType::kInt64, Of<int64_t>({0, 4, 1})));
  EXPECT_FALSE(AllLengthsUpTo(4, DType::kInt64, Of<int64_t>({0, 5, 1})));
  EXPECT_FALSE(AllLengthsUpTo(4, DType::kInt32, Of<int32_t>({-1})));
  EXPECT_FALSE(AllLengthsUpTo(200, DType::kUInt8, Of<uint8_t>({201})));
  EXPECT_TRUE(AllLengthsUpTo(400, DType::kUInt8, Of<uint8_t>({255})));
}

TEST(LengthValuesTest, BytesNeedNotBeAligned) {
  std::vector<char> bytes(1 + 3 * sizeof(int64_t));
  const int64_t values[] = {1, 0, 7};
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  const InputTensor tensor = {.shape = {3}, .data = bytes.data() + 1};
  EXPECT_FALSE(AllLengthsUpTo(6, DType::kInt64, tensor));
  EXPECT_TRUE(AllLengthsUpTo(7, DType::kInt64, tensor));
}

}  // namespace
}  // namespace reprise
