// Batches that a stream runs: an item that leaves is answered at once, the others are computed.
#include "runtime/batching/running_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/batching/fake_items.h"
#include "tests/testing/time_units.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    QueueOptions<FakeItem> options = TestOptions();
    options.max_run_ns = 60'000 * kMs;
    queue = scheduler.AddModel(std::move(options));
    clock.AdvanceNs(kMs);
  }
  std::shared_ptr<FakeItem> Add(std::string name, int64_t deadline_ns = kNoDeadline) {
    auto item = Item(std::move(name), 1, 16);
    item->shape.deadline_ns = item->shape.end_ns = deadline_ns;
    EXPECT_TRUE(scheduler.Submit(queue, {item}).ok());
    return item;
  }

  FakeClock clock;
  std::vector<StuckRun> stuck, came_back;
  TestScheduler scheduler{clock,
                          {.on_stuck = [this](const StuckRun& run) { stuck.push_back(run); },
                           .on_end = [this](const StuckRun& run) { came_back.push_back(run); }}};
  std::shared_ptr<TestQueue> queue;
};

TEST_F(RunTest, OneThatIsCancelledIsAnsweredAtOnceAndItsMatesGoOn) {
  auto a = Add("a"), b = Add("b");
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  ASSERT_THAT(batch->items, SizeIs(2));
  scheduler.Cancel(a);
  scheduler.Cancel(a);
  EXPECT_EQ(a->drops, 1);
  EXPECT_EQ(a->dropped.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(b->drops, 0);
  EXPECT_FALSE(batch->run->stop.stopped());
  scheduler.Finish(*batch);
  EXPECT_EQ(b->drops, 0);
  EXPECT_TRUE(scheduler.WaitUntilIdle(std::chrono::seconds(0)));
}

TEST_F(RunTest, ARunThatNobodyWaitsForIsToldToStop) {
  auto a = Add("a", 100 * kMs), b = Add("b");
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(scheduler.Expire(), 100 * kMs);
  clock.AdvanceNs(99 * kMs);
  scheduler.Expire();
  EXPECT_EQ(a->dropped.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(a->dropped.message()), HasSubstr("99000 us after a stream had begun"));
  EXPECT_FALSE(batch->run->stop.stopped());
  scheduler.Cancel(b);
  EXPECT_TRUE(batch->run->stop.stopped());
  // It has a stream until it ends.
  EXPECT_FALSE(scheduler.WaitUntilIdle(std::chrono::seconds(0)));
  scheduler.Finish(*batch);
  EXPECT_TRUE(scheduler.WaitUntilIdle(std::chrono::seconds(0)));
}

TEST_F(RunTest, WhatComputesForLongerThanItMayIsAnsweredAlsoWhereTheRunDoesNotEnd) {
  auto a = Add("a");
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  // A capture comes first, and does not count.
  clock.AdvanceNs(100'000 * kMs);
  scheduler.Expire();
  EXPECT_EQ(a->drops, 0);
  batch->run->stop.BeginComputing(clock.NowNs());
  clock.AdvanceNs(60'000 * kMs);
  scheduler.Expire();
  EXPECT_EQ(a->drops, 0);  // The run has a moment to end by itself, and to say at which node.
  clock.AdvanceNs(RunningBatch<FakeItem>::kGraceNs + 1);
  scheduler.Expire();
  EXPECT_EQ(a->dropped.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(a->dropped.message()), HasSubstr("the limit is 60000"));
  EXPECT_TRUE(batch->run->stop.stopped());
  scheduler.Finish(*batch);
}

TEST_F(RunTest, ARunThatDoesNotEndIsStuckUntilItDoes) {
  auto a = Add("a"), b = Add("b");
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  batch->run->stream = 3;
  scheduler.Cancel(a);
  scheduler.Cancel(b);
  EXPECT_EQ(scheduler.Expire(), kMs + RunningBatch<FakeItem>::kStuckNs);
  clock.AdvanceNs(RunningBatch<FakeItem>::kStuckNs - 1);
  scheduler.Expire();
  EXPECT_THAT(stuck, SizeIs(0));
  clock.AdvanceNs(1);
  scheduler.Expire();
  scheduler.Expire();
  ASSERT_THAT(stuck, SizeIs(1));
  EXPECT_EQ(stuck[0].stream, 3);
  EXPECT_EQ(stuck[0].queue, "m");
  EXPECT_EQ(stuck[0].since_ns, kMs);
  EXPECT_THAT(came_back, SizeIs(0));
  scheduler.Finish(*batch);
  ASSERT_THAT(came_back, SizeIs(1));
  EXPECT_EQ(came_back[0].stream, 3);
}

TEST_F(RunTest, ARunThatEndsInTimeIsNeverCalledStuck) {
  auto a = Add("a");
  auto batch = scheduler.TryTake();
  scheduler.Cancel(a);
  clock.AdvanceNs(RunningBatch<FakeItem>::kStuckNs / 2);
  scheduler.Finish(*batch);
  clock.AdvanceNs(RunningBatch<FakeItem>::kStuckNs);
  scheduler.Expire();
  EXPECT_THAT(stuck, SizeIs(0));
  EXPECT_THAT(came_back, SizeIs(0));
}

TEST_F(RunTest, ATimeLimitOfTheQueueAloneDoesNotEndWhatRuns) {
  auto item = Item("a", 1, 16);
  item->shape.deadline_ns = 100 * kMs;
  ASSERT_TRUE(scheduler.Submit(queue, {item}).ok());
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  clock.AdvanceNs(1000 * kMs);
  scheduler.Expire();
  EXPECT_EQ(item->drops, 0);
  scheduler.Finish(*batch);
}

TEST_F(RunTest, StoppingAllRunsAnswersWhatTheyCompute) {
  auto a = Add("a"), b = Add("b");
  auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  auto waiting = Add("waiting");
  scheduler.StopRuns(absl::UnavailableError("the server is stopping"));
  EXPECT_EQ(a->dropped.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(b->drops, 1);
  EXPECT_EQ(waiting->drops, 0);
  EXPECT_TRUE(batch->run->stop.stopped());
  scheduler.Finish(*batch);
}

}  // namespace
}  // namespace reprise
