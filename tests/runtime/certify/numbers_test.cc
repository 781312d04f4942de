#include "runtime/certify/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::ElementsAre;

TEST(NumbersTest, TensorsOfEveryDType) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                      DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32,
                      DType::kUInt32, DType::kInt64, DType::kUInt64, DType::kBool}) {
    const Numbers numbers = {dtype, {2}, {0, 1}};
    const Tensor tensor = ToTensor(numbers);
    EXPECT_EQ(tensor.dtype(), dtype);
    EXPECT_EQ(tensor.shape(), numbers.shape);
    EXPECT_EQ(tensor.ToDoubles(), numbers.values);
  }
}

TEST(NumbersTest, ValuesOutsideTheDTypeAreClamped) {
  EXPECT_THAT(ToTensor({DType::kInt8, {3}, {1000, -1000, 5}}).ToDoubles(),
              ElementsAre(127, -128, 5));
  EXPECT_THAT(ToTensor({DType::kUInt64, {1}, {-3}}).ToDoubles(), ElementsAre(0));
  EXPECT_THAT(ToTensor({DType::kFloat16, {1}, {1e9}}).ToDoubles(), ElementsAre(65504));
}

}  // namespace
}  // namespace reprise
