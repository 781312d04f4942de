#include "runtime/recipe/ready_index.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

RecipeKey Key(int64_t batch, int64_t sequence, const std::string& device = "cpu") {
  const GraphFingerprint graph{std::make_shared<const std::string>("graph"), 1};
  return MakeKey(graph, {.axes = {{"batch", batch}, {"sequence", sequence}}}, device);
}

std::shared_ptr<const Recipe> Ready(int64_t batch, int64_t sequence,
                                    const std::string& bucket = "some") {
  auto recipe = std::make_shared<Recipe>();
  recipe->key = Key(batch, sequence);
  recipe->note.bucket = bucket;
  recipe->note.bucketed = bucket != "exact";
  return recipe;
}

const std::set<std::string> kBoth = {"batch", "sequence"};

TEST(CanServeTest, OnlyPaddableAxesMayBeLarger) {
  EXPECT_TRUE(CanServe(Key(4, 64), Key(4, 64), {}));
  EXPECT_TRUE(CanServe(Key(8, 64), Key(4, 30), kBoth));
  EXPECT_TRUE(CanServe(Key(8, 64), Key(4, 64), {"batch"}));
  EXPECT_FALSE(CanServe(Key(8, 64), Key(4, 30), {"batch"}));
  EXPECT_FALSE(CanServe(Key(4, 64), Key(8, 64), kBoth));
}

TEST(CanServeTest, EveryOtherFieldMustBeEqual) {
  EXPECT_FALSE(CanServe(Key(8, 64, "other"), Key(4, 64), kBoth));
  RecipeKey precise = Key(4, 64);
  precise.precision = "bf16";
  EXPECT_FALSE(CanServe(Key(8, 64), precise, kBoth));
  RecipeKey shaped = Key(4, 64);
  shaped.binding.shape_inputs["k"] = Tensor::Int64s({3});
  EXPECT_FALSE(CanServe(Key(8, 64), shaped, kBoth));
}

TEST(SmallestThatServesTest, FewestElementsOfARowDecideThenTheSmallestBatch) {
  const RecipeList ready = {Ready(1, 512), Ready(32, 128), Ready(8, 128), Ready(1, 64),
                            Ready(2, 100, "exact")};
  const auto smallest = [&](int64_t batch, int64_t sequence) {
    return SmallestThatServes(ready, Key(batch, sequence), kBoth, "batch");
  };
  EXPECT_EQ(smallest(1, 60), ready[3]);
  EXPECT_EQ(smallest(2, 60), ready[2]);  // and not the exact one
  EXPECT_EQ(smallest(16, 60), ready[1]);
  EXPECT_EQ(smallest(1, 200), ready[0]);
  EXPECT_EQ(smallest(2, 200), nullptr);
}

TEST(ReadyIndexTest, SnapshotStaysAsItWas) {
  ReadyIndex index;
  const auto recipe = Ready(1, 16);
  index.Add(recipe);
  const auto before = index.Snapshot();
  index.Remove(*recipe);
  EXPECT_EQ(before->size(), 1);
  EXPECT_TRUE(index.Snapshot()->empty());
}

}  // namespace
}  // namespace reprise
