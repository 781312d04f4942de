#include "runtime/recipe/stored_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/recipe/record_file.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr char kStoredGraph[] = R"(graph {
  input %x: f32[batch, 64]
  param %w: f32[64, 32] = p0
  param %b: f32[512] = p1
  const %shape: i64[2] = {-1, 8}
  %h: f32 = MatMul(%x, %w) @projection
  %g: f32 = Gelu(%h)
  %r: f32 = Reshape(%g, %shape)
  %y: f32 = Sigmoid(%r)
  output %y
})";

class StoredRecipeTest : public testing::Test {
 protected:
  StoredRecipeTest() {
    auto graph = Parse(kStoredGraph);
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
    EXPECT_TRUE(RunLoadPasses(graph_).ok());
    key_ = MakeKey(FingerprintGraph(graph_), {.axes = {{"batch", 4}}}, device_.fingerprint());
  }

  CompileOptions Options(CompiledPlan* plan = nullptr) {
    return {.device = &device_, .clock = &clock_, .batch_symbol = "batch", .plan = plan};
  }
  // Returns a captured recipe and its stored form.
  std::unique_ptr<Recipe> Captured(CompiledPlan& plan) {
    auto recipe = Compile(graph_, key_, Options(&plan));
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    return *std::move(recipe);
  }

  CpuDevice device_;
  SteadyClock clock_;
  Graph graph_;
  RecipeKey key_;
};

TEST_F(StoredRecipeTest, ReboundRecipeHasTheLaunchesOfTheCapturedOne) {
  CompiledPlan plan;
  const auto recipe = Captured(plan);
  const auto kept = DecodeRecipe(EncodeRecipe(*recipe, plan), key_);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto again = Rebind(*kept, graph_, key_, Options());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->Dump(), recipe->Dump());
  EXPECT_EQ((*again)->rows, 4);
}

TEST_F(StoredRecipeTest, ARecordAloneTellsItsRecipe) {
  CompiledPlan plan;
  const auto recipe = Captured(plan);
  recipe->note = {.model = "minilm", .version = 3, .bucket = "b4"};
  const auto detached = DetachRecipe(EncodeRecipe(*recipe, plan));
  ASSERT_TRUE(detached.ok()) << detached.status();
  EXPECT_EQ(detached->model, "minilm");
  EXPECT_EQ(detached->version, 3);
  EXPECT_EQ(detached->bucket, "b4");
  EXPECT_EQ(detached->key.hex(), key_.hex());
  EXPECT_EQ(detached->key.binding, key_.binding);
  EXPECT_EQ(detached->key.device, key_.device);
  const auto graph = Parse(detached->plan.graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto again = Rebind(detached->plan, *graph, detached->key, Options());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->Dump(), recipe->Dump());
  EXPECT_TRUE(absl::IsDataLoss(DetachRecipe("no message").status()));
}

TEST_F(StoredRecipeTest, RecordOfAnotherKeyIsNotUsed) {
  CompiledPlan plan;
  const auto recipe = Captured(plan);
  const std::string bytes = EncodeRecipe(*recipe, plan);
  RecipeKey other = MakeKey(key_.graph, {.axes = {{"batch", 5}}}, key_.device);
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeRecipe(bytes, other).status()));
  EXPECT_NE(RecordNameOf(other, "m").key, RecordNameOf(key_, "m").key);
  other = MakeKey(key_.graph, key_.binding, "another device");
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeRecipe(bytes, other).status()));
  EXPECT_EQ(RecordNameOf(other, "m").subject, RecordNameOf(key_, "m").subject);
  other = MakeKey(key_.graph, key_.binding, key_.device, {.precision = Precision::kBf16});
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeRecipe(bytes, other).status()));
  EXPECT_NE(RecordNameOf(other, "m").key, RecordNameOf(key_, "m").key);
  EXPECT_NE(other.hash, key_.hash);
  EXPECT_FALSE(other == key_);
}

TEST_F(StoredRecipeTest, EveryFlippedByteOfTheFileIsAMiss) {
  CompiledPlan plan;
  const auto recipe = Captured(plan);
  const std::string good =
      EncodeRecord({.rebuild_ns = 1000, .payload = EncodeRecipe(*recipe, plan)});
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int bit : {0, 7}) {
      std::string bad = good;
      bad[i] ^= static_cast<char>(1 << bit);
      EXPECT_FALSE(DecodeRecord(bad).ok()) << "byte " << i;
    }
  }
}

// The checksum does not notice the flipped bytes: the record is refused or gives a whole recipe.
TEST_F(StoredRecipeTest, FlippedBytesBehindTheChecksumAreRefusedOrRebindToARecipe) {
  CompiledPlan plan;
  const auto recipe = Captured(plan);
  const std::string good = EncodeRecipe(*recipe, plan);
  int refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    const auto kept = DecodeRecipe(bad, key_);
    if (!kept.ok() || !Rebind(*kept, graph_, key_, Options()).ok()) ++refused;
  }
  EXPECT_GT(refused, static_cast<int>(good.size()) / 3);
}

TEST_F(StoredRecipeTest, PlanThatIsNotOfTheModelIsRefusedWithAReason) {
  CompiledPlan plan;
  Captured(plan);
  const auto refusal = [&](const CompiledPlan& bad) {
    const auto recipe = Rebind(bad, graph_, key_, Options());
    EXPECT_TRUE(absl::IsDataLoss(recipe.status())) << recipe.status();
    return std::string(recipe.status().message());
  };
  EXPECT_THAT(refusal({.graph = "graph {", .kernels = plan.kernels}), HasSubstr("is invalid"));
  EXPECT_THAT(refusal({.graph = plan.graph}), HasSubstr("nodes"));
  CompiledPlan other = plan;
  other.kernels[0] = "no_such_kernel";
  EXPECT_THAT(refusal(other), HasSubstr("no_such_kernel"));
  EXPECT_THAT(refusal({.graph = "graph { input %z: f32[1] output %z }"}), HasSubstr("inputs"));
}

}  // namespace
}  // namespace reprise
