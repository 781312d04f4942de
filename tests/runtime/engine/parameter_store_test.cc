#include "runtime/engine/parameter_store.h"

#include <gtest/gtest.h>

#include "runtime/device/cpu/cpu_device.h"

namespace reprise {
namespace {

TEST(ParameterStoreTest, TenthOfTheParametersMayBeHeldInASecondForm) {
  const CpuDevice device{DetectIsa()};
  std::vector<Tensor> leaves;
  std::vector<ParameterExprPtr> expressions;
  for (int i = 0; i < 20; ++i) {
    leaves.push_back(Tensor::FromVector<float>(DType::kFloat32, {1000}, std::vector<float>(1000)));
    expressions.push_back(ParameterExpr::Leaf(i, DType::kFloat32, {1000}));
  }
  ParameterStore store(std::move(leaves), {.device = &device});
  EXPECT_TRUE(store.MayHold(*expressions[0]));
  EXPECT_TRUE(store.MayHold(*expressions[1]));
  EXPECT_FALSE(store.MayHold(*expressions[2]));
  // Those that may, may for good.
  EXPECT_TRUE(store.MayHold(*expressions[0]));
  // What is held anyway costs nothing more.
  ASSERT_TRUE(store.ValueOf(*expressions[3]).ok());
  EXPECT_TRUE(store.MayHold(*expressions[3]));
}

}  // namespace
}  // namespace reprise
