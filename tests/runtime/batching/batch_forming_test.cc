// Which of the requests that wait share a replay, and how long they wait for company.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/batching/fake_items.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(SchedulerTest, DifferentLengthsShareAReplay) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("short", 1, 30));
  Submit(queue, Item("long", 1, 100));
  EXPECT_THAT(Names(scheduler.TryTake()), UnorderedElementsAre("short", "long"));
}

TEST_F(SchedulerTest, ModelThatSharesNoReplayGoesOneAtATime) {
  QueueOptions<FakeItem> options = TestOptions();
  options.start_batch = nullptr;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 20));
  Submit(queue, Item("b", 1, 20));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a"));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("b"));
}

TEST_F(SchedulerTest, OtherGroupsDoNotJoin) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("a", 1, 20));
  auto other = Item("b", 1, 20);
  other->group = 7;
  Submit(queue, other);
  Submit(queue, Item("c", 1, 20));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a", "c"));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("b"));
}

TEST_F(SchedulerTest, BatchStopsAtTheLargestBucket) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 10; ++i) Submit(queue, Item(std::to_string(i), 1, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), SizeIs(8));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("8", "9"));
}

TEST_F(SchedulerTest, BatchStopsAtTheTokensARecipeHolds) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 3; ++i) Submit(queue, Item(std::to_string(i), 1, 512));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("0", "1"));  // 2 x 512 = 1024 tokens
}

TEST_F(SchedulerTest, ItemWithoutARecipeOfItsSizeGoesAlone) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("huge", 1, 900));
  Submit(queue, Item("small", 1, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("huge"));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("small"));
}

TEST_F(SchedulerTest, SimilarLengthsGoFirstWhenNotAllFit) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("head", 2, 250));
  Submit(queue, Item("short1", 1, 16));
  Submit(queue, Item("alike1", 1, 200));
  Submit(queue, Item("alike2", 1, 256));
  EXPECT_THAT(Names(scheduler.TryTake()), UnorderedElementsAre("head", "alike1", "alike2"));
}

TEST_F(SchedulerTest, PaddingIsBoundedByTheCostOfGoingAlone) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("long", 1, 100));
  for (int i = 0; i < 7; ++i) Submit(queue, Item(std::to_string(i), 1, 5));
  // Eight rows of 128 would cost 1024, alone they cost 128 + 7 * 16 = 240.
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(Names(batch)[0], "long");
  EXPECT_LT(batch->items.size(), 4);
}

TEST_F(SchedulerTest, DelayWaitsForMoreRowsAndNoLonger) {
  QueueOptions<FakeItem> options = TestOptions();
  options.delay_ns = 1000;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 16));
  int64_t wake_ns = 0;
  EXPECT_FALSE(scheduler.TryTake(&wake_ns).has_value());
  EXPECT_EQ(wake_ns, 1000);
  clock.AdvanceNs(400);
  Submit(queue, Item("b", 1, 16));
  EXPECT_FALSE(scheduler.TryTake(&wake_ns).has_value());
  EXPECT_EQ(wake_ns, 1000);
  clock.AdvanceNs(600);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a", "b"));
}

TEST_F(SchedulerTest, FullBatchDoesNotWaitForTheDelay) {
  QueueOptions<FakeItem> options = TestOptions();
  options.delay_ns = 1000;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 8, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a"));
}

TEST_F(SchedulerTest, EnoughRowsDoNotWaitForTheDelay) {
  QueueOptions<FakeItem> options = TestOptions();
  options.delay_ns = 1000;
  options.enough_rows = 2;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 16));
  EXPECT_FALSE(scheduler.TryTake().has_value());
  Submit(queue, Item("b", 1, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace reprise
