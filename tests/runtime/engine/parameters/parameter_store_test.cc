#include "runtime/engine/parameters/parameter_store.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/parameter_expr.h"
#include "tests/testing/resident_pages.h"

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
  EXPECT_FALSE(store.Holds(*expressions[0])) << "to ask takes no room";
  EXPECT_TRUE(store.HoldSecond(*expressions[0]));
  EXPECT_TRUE(store.Holds(*expressions[0]));
  EXPECT_TRUE(store.HoldSecond(*expressions[1]));
  EXPECT_FALSE(store.HoldSecond(*expressions[2]));
  EXPECT_FALSE(store.Holds(*expressions[2]));
  // A second form that was allowed once stays allowed.
  EXPECT_TRUE(store.HoldSecond(*expressions[0]));
  // A form that is held anyway costs nothing more.
  ASSERT_TRUE(store.ValueOf(*expressions[3]).ok());
  EXPECT_TRUE(store.HoldSecond(*expressions[3]));
}

TEST(ParameterStoreTest, FormsThatNoRecipeWantsAreLetGoOfAndTheirRoomIsGivenBack) {
  const CpuDevice device{DetectIsa()};
  MemoryBudget budget(int64_t{1} << 20);
  const ParameterExprPtr leaf = ParameterExpr::Leaf(0, DType::kFloat32, {4, 100});
  const auto turned = [&](std::vector<int64_t> order, Shape shape) {
    return ParameterExpr::Apply("Transpose", {{"perm", std::move(order)}}, {leaf}, DType::kFloat32,
                                std::move(shape));
  };
  const ParameterExprPtr wanted = turned({1, 0}, {100, 4});
  const ParameterExprPtr measured = turned({0, 1}, {4, 100});
  ParameterStore store(
      {Tensor::FromVector<float>(DType::kFloat32, {4, 100}, std::vector<float>(400))},
      {.device = &device, .all_stores = &budget});
  const auto recipe = std::make_shared<Recipe>();
  recipe->parameters = {wanted};
  recipe->unaligned = {false};
  const auto table = store.TableFor(recipe);
  ASSERT_TRUE(table.ok()) << table.status();
  {
    const auto probe = std::make_shared<Recipe>();
    probe->parameters = {wanted, measured};
    probe->unaligned = {false, false};
    ASSERT_TRUE(store.TableFor(probe).ok());
    store.DropUnused();
    EXPECT_TRUE(store.Holds(*measured)) << "a recipe wants it";
  }
  EXPECT_EQ(budget.used(), 2 * 1600);  // leaves are counted where CountLeaves is called
  store.DropUnused();
  EXPECT_FALSE(store.Holds(*measured));
  EXPECT_TRUE(store.Holds(*wanted));
  EXPECT_EQ(budget.used(), 1600);
  EXPECT_EQ(store.TableFor(recipe).value(), *table);
}

TEST(ParameterStoreTest, SleepGivesPreparedFormsBackAndTheFirstUseOrWakeMakesThemAgain) {
  const CpuDevice device{DetectIsa()};
  MemoryBudget budget(int64_t{1} << 20);
  const ParameterExprPtr leaf = ParameterExpr::Leaf(0, DType::kFloat32, {4, 100});
  const ParameterExprPtr turned = ParameterExpr::Apply(
      "Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {leaf}, DType::kFloat32, {100, 4});
  std::vector<float> values(400);
  std::iota(values.begin(), values.end(), 0.0f);
  ParameterStore store({Tensor::FromVector<float>(DType::kFloat32, {4, 100}, values)},
                       {.device = &device, .all_stores = &budget});
  const auto recipe = std::make_shared<Recipe>();
  recipe->parameters = {turned};
  recipe->unaligned = {false};
  const auto second = [](const ParameterTable& table) {
    return static_cast<const float*>(table.addresses()[0])[1];
  };
  const auto held = store.TableFor(recipe).value();
  EXPECT_EQ(second(*held), 100);
  EXPECT_FALSE(store.asleep());
  for (const bool by_use : {true, false}) {
    store.Sleep();
    EXPECT_TRUE(store.asleep());
    EXPECT_EQ(store.prepared_bytes(), 0);
    EXPECT_EQ(budget.used(), 0);
    EXPECT_EQ(second(*held), 100) << "a replay that runs has its table still";
    store.Sleep();  // once more changes nothing
    if (by_use) {
      EXPECT_EQ(second(*store.TableFor(recipe).value()), 100);
    } else {
      ASSERT_TRUE(store.Wake().ok());
    }
    EXPECT_FALSE(store.asleep());
    EXPECT_EQ(store.prepared_bytes(), 1600);
    EXPECT_EQ(budget.used(), 1600);
  }
}

TEST(ParameterStoreTest, PagesOfTheFileLeaveMemoryAndComeBackWhenTheyAreRead) {
  constexpr int64_t kElements = 1 << 18;
  const std::string path = testing::TempDir() + "parameter_store_test.weights";
  std::vector<float> values(kElements);
  std::iota(values.begin(), values.end(), 0.0f);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), kElements * sizeof(float));
  const auto file = MapFile(path);
  ASSERT_TRUE(file.ok());
  const Tensor leaf(DType::kFloat32, {kElements},
                    std::shared_ptr<const void>(file->owner, file->bytes.data()));
  ParameterStore store({leaf}, {.files = {*file}});
  const auto sum = [&] {
    const auto* read = static_cast<const float*>(leaf.data());
    return std::accumulate(read, read + kElements, 0.0);
  };
  const auto resident = [&] {
    return ResidentKib([&](absl::string_view mapping) { return absl::EndsWith(mapping, path); });
  };
  const double before = sum();
  EXPECT_GE(resident(), 1024);
  store.DropFilePages();
  EXPECT_EQ(resident(), 0);
  EXPECT_EQ(sum(), before);
}

}  // namespace
}  // namespace reprise
