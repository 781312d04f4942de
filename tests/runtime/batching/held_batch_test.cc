// Batches whose recipe is being captured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/runtime/batching/fake_items.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;

// A builder whose groups start only when they are ready.
class HeldBuilder final : public TestBuilder {
 public:
  struct Shared {
    std::set<int64_t> ready;  // groups
    std::map<int64_t, std::function<void(absl::Status)>> waiting;
  };
  explicit HeldBuilder(Shared& shared) : shared_(shared) {}
  bool TryAdd(const FakeItem& item) override {
    if (!TestBuilder::TryAdd(item)) return false;
    group_ = item.group;
    return true;
  }
  bool Start(std::function<void(absl::Status)> ready) override {
    if (shared_.ready.contains(group_)) return true;
    shared_.waiting[group_] = std::move(ready);
    return false;
  }

 private:
  Shared& shared_;
  int64_t group_ = 0;
};

class HeldBatchTest : public SchedulerTest {
 protected:
  HeldBatchTest() {
    QueueOptions<FakeItem> options = TestOptions();
    options.start_batch = [this] { return std::make_unique<HeldBuilder>(shared); };
    options.on_depth = [this](int64_t now) { depth = now; };
    queue = scheduler.AddModel(std::move(options));
    shared.ready = {1};
  }
  std::shared_ptr<FakeItem> Add(std::string name, int64_t group,
                                int64_t deadline_ns = kNoDeadline) {
    auto item = Item(std::move(name), 1, 16);
    item->group = group;
    item->shape.deadline_ns = deadline_ns;
    return Submit(queue, item);
  }
  void Land(int64_t group) {
    shared.ready.insert(group);
    shared.waiting.at(group)(absl::OkStatus());
  }

  HeldBuilder::Shared shared;
  std::shared_ptr<TestQueue> queue;
  int64_t depth = 0;
};

TEST_F(HeldBatchTest, BatchThatCannotStartHoldsUpNoOther) {
  Add("cold", 2);
  Add("warm", 1);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("warm"));
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
  EXPECT_EQ(depth, 1);  // the cold one still waits
  Land(2);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("cold"));
  EXPECT_EQ(depth, 0);
}

TEST_F(HeldBatchTest, WhatWasHeldComesBackInItsPlaceAndFormsBatchesAnew) {
  Add("first", 2);
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
  Add("second", 2);
  Land(2);
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("first", "second"));
}

TEST_F(HeldBatchTest, FailureDropsThoseWhoWaitedForIt) {
  const auto cold = Add("cold", 2);
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
  const auto other = Add("other", 3);
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
  shared.waiting.at(2)(absl::InternalError("no recipe"));
  EXPECT_EQ(cold->dropped, absl::InternalError("no recipe"));
  EXPECT_EQ(other->drops, 0);
  EXPECT_EQ(depth, 1);
}

TEST_F(HeldBatchTest, HeldItemsExpireAndCanBeCancelled) {
  const auto expiring = Add("expiring", 2, /*deadline_ns=*/100);
  const auto cancelled = Add("cancelled", 2);
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
  clock.AdvanceNs(100);
  scheduler.Expire();
  EXPECT_TRUE(absl::IsDeadlineExceeded(expiring->dropped));
  scheduler.Cancel(cancelled);
  EXPECT_TRUE(absl::IsCancelled(cancelled->dropped));
  EXPECT_EQ(depth, 0);
  Land(2);
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
}

TEST_F(HeldBatchTest, DrainWaitsForWhatIsHeld) {
  Add("cold", 2);
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
  EXPECT_FALSE(scheduler.WaitUntilIdle(std::chrono::nanoseconds(0)));
  Land(2);
  const auto batch = scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  scheduler.Finish(*batch);
  EXPECT_TRUE(scheduler.WaitUntilIdle(std::chrono::nanoseconds(0)));
}

}  // namespace
}  // namespace reprise
