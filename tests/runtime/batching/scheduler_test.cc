// Turns between models, deadlines, limits, cancelling, draining.
#include "runtime/batching/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/batching/fake_items.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SchedulerTest, NothingQueuedGivesNoBatch) {
  scheduler.AddModel(TestOptions());
  int64_t wake_ns = 0;
  EXPECT_FALSE(scheduler.TryTake(&wake_ns).has_value());
  EXPECT_EQ(wake_ns, kNoDeadline);
}

TEST_F(SchedulerTest, AFreeStreamTakesWhatIsQueuedAtOnce) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("a", 1, 20));
  Submit(queue, Item("b", 1, 20));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a", "b"));
  EXPECT_FALSE(scheduler.TryTake().has_value());
}

TEST_F(SchedulerTest, ModelsTakeTurns) {
  auto a = scheduler.AddModel(TestOptions("a"));
  auto b = scheduler.AddModel(TestOptions("b"));
  for (int i = 0; i < 4; ++i) Submit(a, Item("a", 8, 128));
  Submit(b, Item("b", 8, 128));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a"));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("b"));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a"));
}

TEST_F(SchedulerTest, WaitingModelDoesNotHoldUpAnother) {
  QueueOptions<FakeItem> options = TestOptions("slow");
  options.delay_ns = 1000;
  auto slow = scheduler.AddModel(std::move(options));
  auto quick = scheduler.AddModel(TestOptions("quick"));
  Submit(slow, Item("slow", 1, 16));
  Submit(quick, Item("quick", 1, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("quick"));
}

TEST_F(SchedulerTest, RunningLimitHoldsUntilABatchFinishes) {
  QueueOptions<FakeItem> options = TestOptions();
  options.max_running = 1;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 8, 16));
  Submit(queue, Item("b", 8, 16));
  auto first = scheduler.TryTake();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(scheduler.TryTake().has_value());
  scheduler.Finish(*first);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("b"));
}

TEST_F(SchedulerTest, LowerPriorityNumbersGoFirst) {
  QueueOptions<FakeItem> options = TestOptions();
  options.start_batch = nullptr;
  auto queue = scheduler.AddModel(std::move(options));
  auto late = Item("late", 1, 16);
  late->shape.priority = 2;
  auto urgent = Item("urgent", 1, 16);
  urgent->shape.priority = 1;
  Submit(queue, late);
  Submit(queue, urgent);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("urgent"));
}

TEST_F(SchedulerTest, CancelledItemLeavesBeforeWork) {
  auto queue = scheduler.AddModel(TestOptions());
  auto item = Submit(queue, Item("a", 1, 16));
  scheduler.Cancel(item);
  scheduler.Cancel(item);
  EXPECT_EQ(item->drops, 1);
  EXPECT_EQ(item->dropped.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(scheduler.TryTake().has_value());
}

TEST_F(SchedulerTest, CancelAfterTheBatchHasFinishedDoesNothing) {
  auto queue = scheduler.AddModel(TestOptions());
  auto item = Submit(queue, Item("a", 1, 16));
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  scheduler.Finish(*batch);
  scheduler.Cancel(item);
  EXPECT_EQ(item->drops, 0);
}

TEST_F(SchedulerTest, ExpiredItemLeavesBeforeWork) {
  auto queue = scheduler.AddModel(TestOptions());
  auto item = Item("a", 1, 16);
  item->shape.deadline_ns = 500;
  Submit(queue, item);
  Submit(queue, Item("b", 1, 16));
  EXPECT_EQ(scheduler.Expire(), 500);
  clock.AdvanceNs(500);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("b"));
  EXPECT_EQ(item->dropped.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(SchedulerTest, DeadlineInThePastIsRefused) {
  auto queue = scheduler.AddModel(TestOptions());
  clock.AdvanceNs(1000);
  auto item = Item("a", 1, 16);
  item->shape.deadline_ns = 999;
  Submit(queue, item);
  EXPECT_EQ(last_status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(item->drops, 0);
}

TEST_F(SchedulerTest, DefaultLimitsAdmit64FullBatches) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 64; ++i) {
    Submit(queue, Item("full", 32, 128));
    ASSERT_TRUE(last_status.ok()) << i << ": " << last_status;
  }
  Submit(queue, Item("more", 1, 1));
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(last_status.message()), HasSubstr("262144 tokens wait"));
}

TEST_F(SchedulerTest, FullQueueRefusesWithTheNumbers) {
  QueueOptions<FakeItem> options = TestOptions("bert version 3");
  options.max_requests = 1;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 16));
  Submit(queue, Item("b", 1, 16));
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(last_status.message()),
              HasSubstr("bert version 3 is full: 1 requests wait"));
}

TEST_F(SchedulerTest, ExpiredItemsMakeRoomForLiveOnes) {
  QueueOptions<FakeItem> options = TestOptions();
  options.max_requests = 1;
  auto queue = scheduler.AddModel(std::move(options));
  auto dead = Item("dead", 1, 16);
  dead->shape.deadline_ns = 10;
  Submit(queue, dead);
  clock.AdvanceNs(10);
  Submit(queue, Item("live", 1, 16));
  EXPECT_TRUE(last_status.ok()) << last_status;
  EXPECT_EQ(dead->drops, 1);
}

TEST_F(SchedulerTest, PartsOfOneRequestAreAdmittedTogetherOrNotAtAll) {
  QueueOptions<FakeItem> options = TestOptions();
  options.max_tokens = 100;
  options.always_admitted = 1;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("first", 1, 10));
  std::vector<std::shared_ptr<FakeItem>> parts = {Item("a", 1, 60), Item("b", 1, 60)};
  EXPECT_EQ(scheduler.Submit(queue, parts).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("first"));
  EXPECT_FALSE(scheduler.TryTake().has_value());
}

TEST_F(SchedulerTest, LargeImagesWaitByTheirNumber) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 64; ++i) {
    Submit(queue, Item("image", 1, 1024 * 1024));
    ASSERT_TRUE(last_status.ok()) << i << ": " << last_status;
  }
  Submit(queue, Item("more", 1, 1));
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(last_status.message()), HasSubstr("67108864 tokens wait"));
}

TEST_F(SchedulerTest, WhatHasMoreTokensThanMayWaitIsTakenWhereNothingWaits) {
  QueueOptions<FakeItem> options = TestOptions();
  options.max_tokens = 100;
  options.always_admitted = 1;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("image", 1, 400));
  EXPECT_TRUE(last_status.ok()) << last_status;
  Submit(queue, Item("behind", 1, 1));
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SchedulerTest, DrainingRefusesNewWorkAndFinishesTheOld) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("old", 1, 16));
  scheduler.StopAccepting(absl::UnavailableError("the server is stopping"));
  Submit(queue, Item("new", 1, 16));
  EXPECT_EQ(last_status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(scheduler.WaitUntilIdle(std::chrono::nanoseconds(0)));
  auto batch = scheduler.TryTake();
  EXPECT_THAT(Names(batch), ElementsAre("old"));
  scheduler.Finish(*batch);
  EXPECT_TRUE(scheduler.WaitUntilIdle(std::chrono::nanoseconds(0)));
}

TEST_F(SchedulerTest, DepthIsReportedAfterEveryChange) {
  std::vector<int64_t> depths;
  QueueOptions<FakeItem> options = TestOptions();
  options.on_depth = [&depths](int64_t depth) { depths.push_back(depth); };
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 16));
  Submit(queue, Item("b", 1, 16));
  scheduler.TryTake();
  EXPECT_THAT(depths, ElementsAre(1, 2, 0));
}

}  // namespace
}  // namespace reprise
