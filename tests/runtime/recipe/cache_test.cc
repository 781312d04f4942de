#include "runtime/recipe/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>

namespace reprise {
namespace {

class CountingOwner final : public RecipeCache::Owner {
 public:
  explicit CountingOwner(int64_t max_exact = 100) : max_exact_(max_exact) {}
  void OnEvicted(const Recipe& recipe, RecipeCache::Why why) override {
    evicted.push_back(recipe.key.binding.axes.at("n"));
    last_why = why;
  }
  void OnCacheSize(int64_t recipes, int64_t bytes) override {
    this->recipes = recipes;
    this->bytes = bytes;
  }
  int64_t max_exact() const override { return max_exact_; }
  int64_t max_bytes() const override { return most; }

  int64_t most = 0;
  std::vector<int64_t> evicted;
  RecipeCache::Why last_why = RecipeCache::Why::kMemory;
  int64_t recipes = 0;
  int64_t bytes = 0;

 private:
  int64_t max_exact_;
};

const GraphFingerprint& TestGraph() {
  static const GraphFingerprint* graph =
      new GraphFingerprint{std::make_shared<const std::string>("graph { }"), 7};
  return *graph;
}

RecipeKey KeyFor(int64_t n) { return MakeKey(TestGraph(), {.axes = {{"n", n}}}, "device"); }

std::shared_ptr<const Recipe> RecipeFor(int64_t n, size_t constant_bytes = 1000) {
  auto recipe = std::make_shared<Recipe>();
  recipe->key = KeyFor(n);
  recipe->constants = AlignedBuffer(constant_bytes);
  return recipe;
}

absl::StatusOr<RecipeCache::Result> Get(RecipeCache& cache,
                                        const std::shared_ptr<CountingOwner>& owner, int64_t n,
                                        bool exact = false) {
  return cache.GetOrCapture(
      KeyFor(n), owner, exact,
      [n]() -> absl::StatusOr<std::shared_ptr<const Recipe>> { return RecipeFor(n); });
}

TEST(RecipeCacheTest, SecondAskerHits) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>();
  EXPECT_EQ(Get(cache, owner, 1)->outcome, RecipeCache::Outcome::kCaptured);
  EXPECT_EQ(Get(cache, owner, 1)->outcome, RecipeCache::Outcome::kHit);
  EXPECT_EQ(owner->recipes, 1);
  EXPECT_EQ(owner->bytes, cache.bytes());
}

TEST(RecipeCacheTest, BetterRecipeTakesThePlaceAndTheUsesOfTheOld) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>();
  const std::shared_ptr<const Recipe> old = Get(cache, owner, 1)->recipe;
  Get(cache, owner, 2).IgnoreError();
  cache.Find(KeyFor(1));
  const auto better = RecipeFor(1, 3000);
  EXPECT_TRUE(cache.Replace(*old, better));
  EXPECT_EQ(cache.Peek(KeyFor(1)), better);
  EXPECT_EQ(owner->recipes, 2);
  EXPECT_EQ(owner->bytes, cache.bytes());
  EXPECT_EQ(cache.bytes(), better->memory_bytes() + cache.Peek(KeyFor(2))->memory_bytes());
  EXPECT_EQ(cache.Entries()[0].uses, 2);
  EXPECT_TRUE(owner->evicted.empty());
  const std::shared_ptr<const RecipeList> ready = cache.IndexOf(TestGraph())->Snapshot();
  EXPECT_EQ(std::count(ready->begin(), ready->end(), old), 0);
  EXPECT_EQ(std::count(ready->begin(), ready->end(), better), 1);
}

TEST(RecipeCacheTest, RecipeThatLeftOrWasReplacedIsNotReplacedAgain) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>(/*max_exact=*/1);
  const std::shared_ptr<const Recipe> old = Get(cache, owner, 1, /*exact=*/true)->recipe;
  const auto better = RecipeFor(1);
  EXPECT_TRUE(cache.Replace(*old, better));
  EXPECT_FALSE(cache.Replace(*old, RecipeFor(1)));
  EXPECT_EQ(cache.Peek(KeyFor(1)), better);
  Get(cache, owner, 2, /*exact=*/true).IgnoreError();  // evicts it
  EXPECT_FALSE(cache.Replace(*better, RecipeFor(1)));
  EXPECT_EQ(cache.Peek(KeyFor(1)), nullptr);
}

TEST(RecipeCacheTest, ReplacementThatDoesNotFitIsRefused) {
  const FakeClock clock;
  RecipeCache cache(20'000, clock);
  auto owner = std::make_shared<CountingOwner>();
  const std::shared_ptr<const Recipe> old = Get(cache, owner, 1)->recipe;
  EXPECT_FALSE(cache.Replace(*old, RecipeFor(1, 30'000)));
  owner->most = old->memory_bytes() + 1000;
  EXPECT_FALSE(cache.Replace(*old, RecipeFor(1, 5'000)));
  EXPECT_EQ(cache.Peek(KeyFor(1)), old);
  EXPECT_EQ(cache.bytes(), old->memory_bytes());
}

TEST(RecipeCacheTest, ManyThreadsCauseOneCapture) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>();
  constexpr int kThreads = 16;
  std::atomic<int> captures{0}, captured{0};
  std::latch all_asked(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      all_asked.count_down();
      auto result = cache.GetOrCapture(
          KeyFor(1), owner, false, [&]() -> absl::StatusOr<std::shared_ptr<const Recipe>> {
            all_asked.wait();  // Everybody is at the door before the capture ends.
            ++captures;
            return RecipeFor(1);
          });
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(result->recipe->key, KeyFor(1));
      if (result->outcome == RecipeCache::Outcome::kCaptured) ++captured;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(captures, 1);
  EXPECT_EQ(captured, 1);
}

TEST(RecipeCacheTest, FailureReachesTheAskerAndIsForgotten) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>();
  auto failed = cache.GetOrCapture(
      KeyFor(1), owner, false,
      []() -> absl::StatusOr<std::shared_ptr<const Recipe>> { return absl::InternalError("no"); });
  EXPECT_EQ(failed.status(), absl::InternalError("no"));
  EXPECT_EQ(Get(cache, owner, 1)->outcome, RecipeCache::Outcome::kCaptured);
}

TEST(RecipeCacheTest, WhoWaitsForACaptureThatThrowsIsToldOfIt) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>();
  std::latch captures_begun(1);
  const auto capture = [&]() -> absl::StatusOr<std::shared_ptr<const Recipe>> {
    captures_begun.count_down();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // time for the other to ask
    throw std::runtime_error("no");
  };
  std::thread asking([&] {
    captures_begun.wait();
    const auto result = Get(cache, owner, 1);
    // It waited; or came late, and captured itself.
    EXPECT_TRUE(!result.ok() || result->outcome == RecipeCache::Outcome::kCaptured);
  });
  EXPECT_THROW((void)cache.GetOrCapture(KeyFor(1), owner, false, capture), std::runtime_error);
  asking.join();
  EXPECT_TRUE(Get(cache, owner, 1).ok());
}

TEST(RecipeCacheTest, WhatIsNotWantedAnyMoreGoesFirst) {
  const int64_t one = RecipeFor(1)->memory_bytes();
  const FakeClock clock;
  RecipeCache cache(3 * one, clock);
  auto owner = std::make_shared<CountingOwner>();
  for (int64_t n : {1, 2, 3}) ASSERT_TRUE(Get(cache, owner, n).ok());
  cache.Retire(owner, [](const Recipe& recipe) { return recipe.key != KeyFor(3); });
  EXPECT_TRUE(owner->evicted.empty());
  ASSERT_TRUE(Get(cache, owner, 4).ok());
  EXPECT_THAT(owner->evicted, testing::ElementsAre(3));
}

TEST(RecipeCacheTest, WhatIsNotWantedTwiceLeavesUnlessItWasUsedAndItsHoldersKeepIt) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>();
  for (int64_t n : {1, 2, 3}) ASSERT_TRUE(Get(cache, owner, n).ok());
  const std::shared_ptr<const Recipe> held = cache.Find(KeyFor(1));
  const auto only_third = [](const Recipe& recipe) { return recipe.key == KeyFor(3); };
  cache.Retire(owner, only_third);
  cache.Find(KeyFor(2));
  cache.Retire(owner, only_third);
  EXPECT_THAT(owner->evicted, testing::ElementsAre(1));
  EXPECT_EQ(owner->last_why, RecipeCache::Why::kRetired);
  EXPECT_EQ(held->key, KeyFor(1));
  EXPECT_EQ(owner->recipes, 2);
  // Retiring for another owner evicts nothing of this one.
  auto other = std::make_shared<CountingOwner>();
  cache.Retire(other, only_third);
  cache.Retire(other, only_third);
  EXPECT_EQ(owner->evicted.size(), 1u);
}

TEST(RecipeCacheTest, ByteLimitEvictsLeastRecentlyUsed) {
  const int64_t one = RecipeFor(1)->memory_bytes();
  const FakeClock clock;
  RecipeCache cache(3 * one, clock);
  auto owner = std::make_shared<CountingOwner>();
  for (int64_t n : {1, 2, 3}) ASSERT_TRUE(Get(cache, owner, n).ok());
  ASSERT_NE(cache.Find(KeyFor(1)), nullptr);  // 2 is now the oldest.
  ASSERT_TRUE(Get(cache, owner, 4).ok());
  EXPECT_THAT(owner->evicted, testing::ElementsAre(2));
  ASSERT_TRUE(cache.EvictionOf(KeyFor(2)).has_value());
  EXPECT_EQ(cache.EvictionOf(KeyFor(2))->at_ns, clock.NowNs());
  EXPECT_EQ(cache.EvictionOf(KeyFor(2))->why, RecipeCache::Why::kMemory);
  EXPECT_FALSE(cache.EvictionOf(KeyFor(1)).has_value());
  EXPECT_LE(cache.bytes(), 3 * one);
  EXPECT_EQ(owner->recipes, 3);
}

TEST(RecipeCacheTest, LimitOfAnOwnerEvictsItsOwnRecipesAlone) {
  const int64_t one = RecipeFor(1)->memory_bytes();
  const FakeClock clock;
  RecipeCache cache(10 * one, clock);
  auto small = std::make_shared<CountingOwner>();
  small->most = 2 * one;
  auto other = std::make_shared<CountingOwner>();
  ASSERT_TRUE(Get(cache, other, 1).ok());
  for (int64_t n : {2, 3}) ASSERT_TRUE(Get(cache, small, n).ok());
  ASSERT_NE(cache.Find(KeyFor(2)), nullptr);
  ASSERT_TRUE(Get(cache, small, 4).ok());
  EXPECT_THAT(small->evicted, testing::ElementsAre(3));
  EXPECT_TRUE(other->evicted.empty());
  small->most = one - 1;
  const auto refused = Get(cache, small, 5);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("max_recipe_mb"));
}

TEST(RecipeCacheTest, RecipeAboveTheLimitIsRefusedWithBothNumbers) {
  const FakeClock clock;
  RecipeCache cache(10, clock);
  auto owner = std::make_shared<CountingOwner>();
  auto result = Get(cache, owner, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
  EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr("holds 10"));
}

TEST(RecipeCacheTest, ExactRecipesAreBoundedPerOwner) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto owner = std::make_shared<CountingOwner>(/*max_exact=*/2);
  ASSERT_TRUE(Get(cache, owner, 100).ok());  // a bucket: does not count
  for (int64_t n : {1, 2, 3}) ASSERT_TRUE(Get(cache, owner, n, /*exact=*/true).ok());
  EXPECT_THAT(owner->evicted, testing::ElementsAre(1));
  EXPECT_EQ(owner->last_why, RecipeCache::Why::kExactLimit);
  EXPECT_NE(cache.Find(KeyFor(100)), nullptr);
}

TEST(RecipeCacheTest, RemovedOwnerTakesItsRecipesAlong) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto ours = std::make_shared<CountingOwner>();
  auto theirs = std::make_shared<CountingOwner>();
  ASSERT_TRUE(Get(cache, ours, 1).ok());
  ASSERT_TRUE(Get(cache, theirs, 2).ok());
  cache.RemoveOwner(ours);
  EXPECT_EQ(cache.Find(KeyFor(1)), nullptr);
  EXPECT_NE(cache.Find(KeyFor(2)), nullptr);
  EXPECT_THAT(ours->evicted, testing::ElementsAre(1));
  EXPECT_EQ(ours->last_why, RecipeCache::Why::kUnload);
  EXPECT_EQ(ours->recipes, 0);
  EXPECT_EQ(ours->bytes, 0);
}

TEST(RecipeCacheTest, HeirHasTheRecipesOfARemovedOwner) {
  const FakeClock clock;
  RecipeCache cache(1 << 20, clock);
  auto before = std::make_shared<CountingOwner>();
  auto heir = std::make_shared<CountingOwner>();
  ASSERT_TRUE(Get(cache, before, 1).ok());
  cache.RemoveOwner(before, heir);
  EXPECT_NE(cache.Find(KeyFor(1)), nullptr);
  EXPECT_TRUE(before->evicted.empty());
  EXPECT_EQ(before->recipes, 0);
  EXPECT_EQ(heir->recipes, 1);
  EXPECT_GT(heir->bytes, 0);
}

TEST(RecipeKeyTest, KeysDifferByBindingDeviceAndGraph) {
  const RecipeKey key = KeyFor(1);
  EXPECT_EQ(key, KeyFor(1));
  EXPECT_FALSE(key == KeyFor(2));
  EXPECT_FALSE(key == MakeKey(TestGraph(), {.axes = {{"n", 1}}}, "other device"));
  GraphFingerprint other{std::make_shared<const std::string>("graph { other }"), 8};
  EXPECT_FALSE(key == MakeKey(other, {.axes = {{"n", 1}}}, "device"));
  // The hash alone never decides.
  RecipeKey forged = MakeKey(other, {.axes = {{"n", 1}}}, "device");
  forged.hash = key.hash;
  EXPECT_FALSE(key == forged);
}

}  // namespace
}  // namespace reprise
