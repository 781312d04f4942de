#include "runtime/ops/quantized/byte_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns the table that maps bits i to 255 - i.
std::vector<uint8_t> Reversed() {
  std::vector<uint8_t> table;
  for (int i = 0; i < ops::kByteValues; ++i) table.push_back(static_cast<uint8_t>(255 - i));
  return table;
}

TEST(ByteTableTest, EachByteIsLookedUpByItsBits) {
  const Tensor table = U8({256}, Reversed());
  const auto of_bytes = RunOp("reprise.ByteTable", {U8({2, 2}, {0, 1, 128, 255}), table});
  EXPECT_THAT(Numbers(of_bytes), ElementsAre(255, 254, 127, 0));
  EXPECT_EQ(ShapeOf(of_bytes), (Shape{2, 2}));
  const auto of_signed = RunOp("reprise.ByteTable", {I8({4}, {0, 127, -128, -1}), table});
  EXPECT_THAT(Numbers(of_signed), ElementsAre(255, 128, 127, 0));
}

TEST(ByteTableTest, RefusalsNameTheTableAndBothShapes) {
  EXPECT_THAT(
      std::string(RunOp("reprise.ByteTable", {U8({1}, {0}), U8({2}, {1, 2})}).status().message()),
      HasSubstr("input 1 has the shape [2], expected [256]"));
}

}  // namespace
}  // namespace reprise
