// Requests that would wait too long are refused at once; loads are counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/batching/scheduler.h"
#include "tests/runtime/batching/fake_items.h"
#include "tests/testing/time_units.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRunNs = 100 * kMs;  // each batch is one item of 16 tokens

class OverloadTest : public SchedulerTest {
 protected:
  // Items of 16 tokens go one by one: 160 tokens a second on the one stream.
  std::shared_ptr<TestQueue> Queue(int64_t always_waiting = 0) {
    QueueOptions<FakeItem> options = TestOptions();
    options.start_batch = nullptr;
    options.max_wait_ns = 1000 * kMs;
    options.always_waiting_tokens = always_waiting;
    return scheduler.AddModel(std::move(options));
  }
  bool Offer(const std::shared_ptr<TestQueue>& queue, uint64_t priority = 0) {
    auto item = Item("a", 1, 16);
    item->shape.priority = priority;
    Submit(queue, item);
    return last_status.ok();
  }
  void RunOne() {
    const auto batch = scheduler.TryTake();
    ASSERT_TRUE(batch.has_value());
    clock.AdvanceNs(kRunNs);
    scheduler.Finish(*batch);
  }
  // Takes and runs the items that are there, so that the rate is known.
  void Learn(const std::shared_ptr<TestQueue>& queue) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(Offer(queue));
    for (int i = 0; i < 5; ++i) RunOne();
  }
  int64_t OfferMany(const std::shared_ptr<TestQueue>& queue, int count, uint64_t priority = 0) {
    int64_t taken = 0;
    for (int i = 0; i < count; ++i) taken += Offer(queue, priority) ? 1 : 0;
    return taken;
  }
};

TEST_F(OverloadTest, NothingIsRefusedByAgeBeforeARateIsKnown) {
  auto queue = Queue();
  EXPECT_EQ(OfferMany(queue, 1000), 1000);
}

TEST_F(OverloadTest, WhatWouldWaitLongerThanTheLimitIsRefusedWithTheNumbers) {
  auto queue = Queue();
  Learn(queue);
  EXPECT_EQ(OfferMany(queue, 100), 11) << "a second of work in front, and one more";
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(last_status.message()),
      HasSubstr("176 tokens wait, which takes 1.1 s at the present rate, the limit is 1 s"));
  RunOne();
  EXPECT_TRUE(Offer(queue));
  EXPECT_FALSE(Offer(queue));
}

TEST_F(OverloadTest, AcceptedOnesWaitNoLongerThanTheLimitAtFourTimesTheCapacity) {
  auto queue = Queue();
  Learn(queue);
  int64_t answered = 0;
  int64_t longest = 0;
  for (int second = 0; second < 30; ++second) {
    for (int i = 0; i < 10; ++i) {
      OfferMany(queue, 4);
      const auto batch = scheduler.TryTake();
      ASSERT_TRUE(batch.has_value());
      longest = std::max(longest, clock.NowNs() - batch->items[0]->place.enqueued_ns);
      clock.AdvanceNs(kRunNs);
      scheduler.Finish(*batch);
      ++answered;
    }
  }
  EXPECT_EQ(answered, 300) << "the stream is never idle";
  EXPECT_LE(longest, 1200 * kMs);
}

TEST_F(OverloadTest, SomeBatchesMayWaitHoweverLongTheyTake) {
  auto queue = Queue(/*always_waiting=*/20 * 16);
  Learn(queue);
  EXPECT_EQ(OfferMany(queue, 100), 21);
}

TEST_F(OverloadTest, OnlyWhatGoesFirstIsInFront) {
  auto queue = Queue();
  Learn(queue);
  EXPECT_EQ(OfferMany(queue, 100, /*priority=*/2), 11);
  EXPECT_EQ(OfferMany(queue, 100, /*priority=*/1), 11);
  EXPECT_FALSE(Offer(queue, /*priority=*/2));
}

TEST_F(OverloadTest, RequestThatComputesLongerThanTheLimitIsTakenByAnEmptyQueue) {
  auto queue = Queue();
  Learn(queue);
  Submit(queue, Item("large", 1, 100000));
  EXPECT_TRUE(last_status.ok());
  EXPECT_FALSE(Offer(queue)) << "behind it everything would wait";
}

TEST_F(OverloadTest, LoadIsThatOfAllQueuesAndBusyTimeThatOfAllStreams) {
  auto a = Queue();
  auto b = Queue();
  EXPECT_EQ(scheduler.GetLoad().waiting.requests, 0);
  OfferMany(a, 2);
  OfferMany(b, 3);
  EXPECT_EQ(scheduler.GetLoad().waiting.requests, 5);
  EXPECT_EQ(scheduler.GetLoad().waiting.tokens, 80);
  const auto first = scheduler.TryTake();
  clock.AdvanceNs(10 * kMs);
  const auto second = scheduler.TryTake();
  clock.AdvanceNs(10 * kMs);
  EXPECT_EQ(scheduler.GetLoad().waiting.requests, 3);
  EXPECT_EQ(scheduler.GetLoad().running.requests, 2);
  EXPECT_EQ(scheduler.GetLoad().running.tokens, 32);
  EXPECT_EQ(scheduler.GetLoad().busy_ns, 30 * kMs);
  scheduler.Finish(*first);
  scheduler.Finish(*second);
  clock.AdvanceNs(10 * kMs);
  EXPECT_EQ(scheduler.GetLoad().running.requests, 0);
  EXPECT_EQ(scheduler.GetLoad().busy_ns, 30 * kMs);
}

}  // namespace
}  // namespace reprise
