#include "runtime/graph/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace reprise {
namespace {

// Elements of every dtype, from bytes that are other numbers in each.
Tensor Some(DType dtype) {
  return Tensor::Make(dtype, {5}, [&](void* data) {
    const std::vector<uint8_t> bytes = {0x00, 0x3C, 0x80, 0x3F, 0x01, 0x00, 0x40, 0xC0};
    auto* to = static_cast<uint8_t*>(data);
    for (size_t i = 0; i < 5 * DTypeSize(dtype); ++i) to[i] = bytes[i % bytes.size()];
    if (dtype == DType::kBool) std::memset(data, 1, 5);
  });
}

TEST(ElementsTest, EveryElementIsSeenAsToDoublesHasIt) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8,
        DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32, DType::kUInt32, DType::kInt64,
        DType::kUInt64, DType::kBool}) {
    const Tensor tensor = Some(dtype);
    std::vector<double> seen;
    EXPECT_TRUE(AllElements(tensor, [&](double value) {
      seen.push_back(value);
      return true;
    }));
    EXPECT_THAT(seen, testing::ElementsAreArray(tensor.ToDoubles())) << DTypeName(dtype);
  }
}

TEST(ElementsTest, TheFirstThatDoesNotHoldEndsIt) {
  const Tensor tensor = Tensor::Int64s({3, 2, 1, 0, -1});
  int asked = 0;
  EXPECT_FALSE(AllElements(tensor, [&](double value) {
    ++asked;
    return value > 1;
  }));
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(AllElements(Tensor::Int64s({}), [](double) { return false; }));
  EXPECT_TRUE(AllElements(Tensor(), [](double) { return false; }));
}

}  // namespace
}  // namespace reprise
