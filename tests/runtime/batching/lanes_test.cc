// Shares: waiting items are served by weights; a priority orders the items of one share, for a
// while.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "tests/runtime/batching/fake_items.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LanesTest : public SchedulerTest {
 protected:
  // Submits an item that fills a batch.
  std::shared_ptr<FakeItem> SubmitFor(const std::shared_ptr<TestQueue>& queue, uint64_t share,
                                      double weight = 1, uint64_t priority = 0) {
    auto item = Item(absl::StrCat("of ", share), 8, 128);
    item->shape.share = share;
    item->shape.weight = weight;
    item->shape.priority = priority;
    return Submit(queue, std::move(item));
  }
  // Returns how many of the next `count` batches each share gets.
  std::map<std::string, int> Take(int count) {
    std::map<std::string, int> taken;
    for (int i = 0; i < count; ++i) {
      const auto batch = scheduler.TryTake();
      if (batch.has_value()) ++taken[batch->items.front()->name];
      if (batch.has_value()) scheduler.Finish(*batch);
    }
    return taken;
  }
};

TEST_F(LanesTest, AShareThatComesLateIsNextHoweverManyWait) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 100; ++i) SubmitFor(queue, 1);
  Take(20);
  SubmitFor(queue, 2);
  EXPECT_EQ(Take(2)["of 2"], 1);
}

TEST_F(LanesTest, SharesAreServedByTheirWeights) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 100; ++i) {
    SubmitFor(queue, 1);
    SubmitFor(queue, 2, /*weight=*/3);
  }
  auto taken = Take(40);
  EXPECT_NEAR(taken["of 2"], 30, 1);
  EXPECT_NEAR(taken["of 1"], 10, 1);
}

TEST_F(LanesTest, AShareIsOneForAllModelsWhichTakeTurnsInIt) {
  auto one = scheduler.AddModel(TestOptions("one")),
       other = scheduler.AddModel(TestOptions("other"));
  std::map<const TestQueue*, int> turns;
  int of_few = 0;
  for (int i = 0; i < 60; ++i) {
    SubmitFor(one, 1);
    SubmitFor(other, 1);
    SubmitFor(one, 2);
  }
  for (int i = 0; i < 40; ++i) {
    const auto batch = scheduler.TryTake();
    ASSERT_TRUE(batch.has_value());
    const bool few = batch->items.front()->shape.share == 2;
    of_few += few;
    if (!few) ++turns[batch->queue.get()];
    scheduler.Finish(*batch);
  }
  EXPECT_NEAR(of_few, 20, 1);
  EXPECT_NEAR(turns[other.get()], turns[one.get()], 1);
}

TEST_F(LanesTest, WhatOneShareLeavesIsForTheOthersAndNobodySavesUp) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 50; ++i) SubmitFor(queue, 1);
  EXPECT_EQ(Take(30)["of 1"], 30);
  // It was away for long, and gets its half from now on, no more.
  for (int i = 0; i < 50; ++i) SubmitFor(queue, 2);
  EXPECT_NEAR(Take(20)["of 2"], 10, 1);
}

TEST_F(LanesTest, APriorityOrdersItsOwnShareAlone) {
  auto queue = scheduler.AddModel(TestOptions());
  for (int i = 0; i < 20; ++i) SubmitFor(queue, 1, 1, /*priority=*/1);
  const auto low = SubmitFor(queue, 2, 1, /*priority=*/9);
  const auto high = SubmitFor(queue, 2, 1, /*priority=*/2);
  std::vector<uint64_t> priorities;
  for (int i = 0; i < 4; ++i) {
    const auto batch = scheduler.TryTake();
    if (batch->items.front()->shape.share == 2) {
      priorities.push_back(batch->items.front()->shape.priority);
    }
    scheduler.Finish(*batch);
  }
  EXPECT_THAT(priorities, ElementsAre(2, 9));
}

TEST_F(LanesTest, WhoeverHasWaitedForLongGoesBeforeHigherPriorities) {
  auto queue = scheduler.AddModel(TestOptions());
  SubmitFor(queue, 1, 1, /*priority=*/9);
  for (int second = 0; second < 12; ++second) {
    clock.AdvanceNs(1'000'000'000);
    SubmitFor(queue, 1, 1, /*priority=*/1);
    SubmitFor(queue, 1, 1, /*priority=*/1);
    const auto batch = scheduler.TryTake();
    ASSERT_TRUE(batch.has_value());
    scheduler.Finish(*batch);
    if (batch->items.front()->shape.priority == 9) {
      EXPECT_GE(second, 4);
      return;
    }
  }
  ADD_FAILURE() << "the low priority starves";
}

TEST_F(LanesTest, AFullQueueLetsAShareInThatHasLessThanItsPart) {
  QueueOptions<FakeItem> options = TestOptions();
  options.max_requests = 10;
  auto queue = scheduler.AddModel(std::move(options));
  for (int i = 0; i < 10; ++i) SubmitFor(queue, 1);
  SubmitFor(queue, 1);
  EXPECT_THAT(std::string(last_status.message()), HasSubstr("10 requests wait"));
  for (int i = 0; i < 5; ++i) {
    SubmitFor(queue, 2);
    EXPECT_TRUE(last_status.ok()) << last_status;
  }
  SubmitFor(queue, 2);
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(LanesTest, OneThatWaitsInAShortLaneIsNotRefusedForWhatOthersHaveWaiting) {
  QueueOptions<FakeItem> options = TestOptions();
  options.max_wait_ns = 1'000'000'000;
  auto queue = scheduler.AddModel(std::move(options));
  // A rate of a batch a second.
  for (int i = 0; i < 3; ++i) SubmitFor(queue, 1);
  for (int i = 0; i < 2; ++i) {
    const auto batch = scheduler.TryTake();
    clock.AdvanceNs(1'000'000'000);
    scheduler.Finish(*batch);
  }
  for (int i = 0; i < 8; ++i) SubmitFor(queue, 1);
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
  SubmitFor(queue, 2);
  EXPECT_TRUE(last_status.ok()) << last_status;
}

}  // namespace
}  // namespace reprise
