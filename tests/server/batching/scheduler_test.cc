#include "server/batching/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "server/batching/dispatcher.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class FakeItem : public WorkItem {
 public:
  explicit FakeItem(std::string name) : name(std::move(name)) {}
  void Drop(const absl::Status& why) override {
    ++drops;
    dropped = why;
  }
  const std::string name;
  int64_t length = 1;
  int64_t group = 0;
  int drops = 0;
  absl::Status dropped;
};

std::shared_ptr<FakeItem> Item(std::string name, int64_t rows, int64_t length) {
  auto item = std::make_shared<FakeItem>(std::move(name));
  item->shape.rows = rows;
  item->length = length;
  item->shape.tokens = rows * length;
  item->shape.bytes = rows * length * 8;
  return item;
}

int64_t Bucket(int64_t size) {
  int64_t bucket = 1;
  while (bucket < size) bucket *= 2;
  return bucket;
}

// Buckets are powers of two: at most 8 rows, length 16 to 512, 1024 tokens. Items share a replay if
// that costs at most twice what they cost alone; one that has no bucket goes alone.
class TestBuilder : public BatchBuilder {
 public:
  bool TryAdd(const WorkItem& work) override {
    const auto& item = static_cast<const FakeItem&>(work);
    const auto own = Cost(item.shape.rows, item.length);
    if (rows_ > 0) {
      const auto shared = Cost(rows_ + item.shape.rows, std::max(length_, item.length));
      if (item.group != group_ || !own || !shared || *shared > 2 * (alone_ + *own)) return false;
    }
    group_ = item.group;
    rows_ += item.shape.rows;
    length_ = std::max(length_, item.length);
    alone_ += own.value_or(0);
    return true;
  }
  bool full() const override { return !Cost(rows_ + 1, length_); }

 private:
  static std::optional<int64_t> Cost(int64_t rows, int64_t length) {
    const int64_t cost = Bucket(rows) * std::max<int64_t>(16, Bucket(length));
    if (rows > 8 || length > 512 || cost > 1024) return std::nullopt;
    return cost;
  }
  int64_t group_ = 0;
  int64_t rows_ = 0;
  int64_t length_ = 0;
  int64_t alone_ = 0;
};

QueueOptions TestOptions(std::string name = "m") {
  return {.name = std::move(name), .start_batch = [] { return std::make_unique<TestBuilder>(); }};
}

std::vector<std::string> Names(const std::optional<Scheduler::Batch>& batch) {
  std::vector<std::string> names;
  if (!batch) return names;
  for (const auto& item : batch->items) names.push_back(static_cast<FakeItem&>(*item).name);
  return names;
}

class SchedulerTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeItem> Submit(const std::shared_ptr<ModelQueue>& queue,
                                   std::shared_ptr<FakeItem> item) {
    last_status = scheduler.Submit(queue, {item});
    return item;
  }
  FakeClock clock;
  Scheduler scheduler{clock};
  absl::Status last_status;
};

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

TEST_F(SchedulerTest, DifferentLengthsShareAReplay) {
  auto queue = scheduler.AddModel(TestOptions());
  Submit(queue, Item("short", 1, 30));
  Submit(queue, Item("long", 1, 100));
  EXPECT_THAT(Names(scheduler.TryTake()), UnorderedElementsAre("short", "long"));
}

TEST_F(SchedulerTest, ModelThatSharesNoReplayGoesOneAtATime) {
  QueueOptions options = TestOptions();
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

TEST_F(SchedulerTest, ModelsTakeTurns) {
  auto a = scheduler.AddModel(TestOptions("a"));
  auto b = scheduler.AddModel(TestOptions("b"));
  for (int i = 0; i < 4; ++i) Submit(a, Item("a", 8, 128));
  Submit(b, Item("b", 8, 128));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a"));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("b"));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a"));
}

TEST_F(SchedulerTest, DelayWaitsForMoreRowsAndNoLonger) {
  QueueOptions options = TestOptions();
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
  QueueOptions options = TestOptions();
  options.delay_ns = 1000;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 8, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a"));
}

TEST_F(SchedulerTest, EnoughRowsDoNotWaitForTheDelay) {
  QueueOptions options = TestOptions();
  options.delay_ns = 1000;
  options.enough_rows = 2;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 16));
  EXPECT_FALSE(scheduler.TryTake().has_value());
  Submit(queue, Item("b", 1, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("a", "b"));
}

TEST_F(SchedulerTest, WaitingModelDoesNotHoldUpAnother) {
  QueueOptions options = TestOptions("slow");
  options.delay_ns = 1000;
  auto slow = scheduler.AddModel(std::move(options));
  auto quick = scheduler.AddModel(TestOptions("quick"));
  Submit(slow, Item("slow", 1, 16));
  Submit(quick, Item("quick", 1, 16));
  EXPECT_THAT(Names(scheduler.TryTake()), ElementsAre("quick"));
}

TEST_F(SchedulerTest, RunningLimitHoldsUntilABatchFinishes) {
  QueueOptions options = TestOptions();
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
  QueueOptions options = TestOptions();
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

TEST_F(SchedulerTest, CancelAfterTheStreamTookItDoesNothing) {
  auto queue = scheduler.AddModel(TestOptions());
  auto item = Submit(queue, Item("a", 1, 16));
  auto batch = scheduler.TryTake();
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
  QueueOptions options = TestOptions("bert version 3");
  options.max_requests = 1;
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 16));
  Submit(queue, Item("b", 1, 16));
  EXPECT_EQ(last_status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(last_status.message()),
              HasSubstr("bert version 3 is full: 1 requests wait"));
}

TEST_F(SchedulerTest, ExpiredItemsMakeRoomForLiveOnes) {
  QueueOptions options = TestOptions();
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
  QueueOptions options = TestOptions();
  options.max_tokens = 100;
  auto queue = scheduler.AddModel(std::move(options));
  std::vector<std::shared_ptr<WorkItem>> parts = {Item("a", 1, 60), Item("b", 1, 60)};
  EXPECT_EQ(scheduler.Submit(queue, parts).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(scheduler.TryTake().has_value());
}

// A builder whose groups start only when they are ready.
class HeldBuilder final : public TestBuilder {
 public:
  struct Shared {
    std::set<int64_t> ready;  // groups
    std::map<int64_t, std::function<void(absl::Status)>> waiting;
  };
  explicit HeldBuilder(Shared& shared) : shared_(shared) {}
  bool TryAdd(const WorkItem& item) override {
    if (!TestBuilder::TryAdd(item)) return false;
    group_ = static_cast<const FakeItem&>(item).group;
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
    QueueOptions options = TestOptions();
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
  std::shared_ptr<ModelQueue> queue;
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

TEST_F(HeldBatchTest, LandingAfterTheModelWasRemovedFindsNobody) {
  const auto cold = Add("cold", 2);
  EXPECT_EQ(scheduler.TryTake(), std::nullopt);
  scheduler.RemoveModel(queue, absl::UnavailableError("unloaded"));
  EXPECT_EQ(cold->drops, 1);
  Land(2);
  EXPECT_EQ(cold->drops, 1);
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

TEST_F(SchedulerTest, RemovedModelDropsWhatWaitsAndRefusesTheRest) {
  auto queue = scheduler.AddModel(TestOptions());
  auto item = Submit(queue, Item("a", 1, 16));
  scheduler.RemoveModel(queue, absl::UnavailableError("unloaded"));
  EXPECT_EQ(item->dropped.message(), "unloaded");
  Submit(queue, Item("b", 1, 16));
  EXPECT_EQ(last_status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(SchedulerTest, DepthIsReportedAfterEveryChange) {
  std::vector<int64_t> depths;
  QueueOptions options = TestOptions();
  options.on_depth = [&depths](int64_t depth) { depths.push_back(depth); };
  auto queue = scheduler.AddModel(std::move(options));
  Submit(queue, Item("a", 1, 16));
  Submit(queue, Item("b", 1, 16));
  scheduler.TryTake();
  EXPECT_THAT(depths, ElementsAre(1, 2, 0));
}

// Threads, but no sleeps: leaders answer everything that several clients submit.
TEST(DispatcherTest, EveryItemIsExecutedOnceByOneOfTheStreams) {
  SteadyClock clock;
  Scheduler scheduler(clock);
  auto queue = scheduler.AddModel(TestOptions());
  std::atomic<int> executed = 0;
  std::atomic<int> bad_streams = 0;
  constexpr int kClients = 4;
  constexpr int kRequests = 200;
  {
    Dispatcher dispatcher(scheduler, 2, [&](int stream, Scheduler::Batch& batch) {
      if (stream < 0 || stream > 1) ++bad_streams;
      executed += static_cast<int>(batch.items.size());
    });
    std::vector<std::thread> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back([&] {
        for (int i = 0; i < kRequests; ++i) {
          EXPECT_TRUE(scheduler.Submit(queue, {Item("x", 1, 16)}).ok());
        }
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_TRUE(scheduler.WaitUntilIdle(std::chrono::seconds(60)));
    scheduler.Shutdown(absl::UnavailableError("done"));
  }
  EXPECT_EQ(executed, kClients * kRequests);
  EXPECT_EQ(bad_streams, 0);
}

TEST(DispatcherTest, ExpiredRequestIsAnsweredWhileEveryStreamIsBusy) {
  SteadyClock clock;
  Scheduler scheduler(clock);
  auto queue = scheduler.AddModel(TestOptions());
  std::atomic<bool> release = false;
  struct Notified : FakeItem {
    using FakeItem::FakeItem;
    void Drop(const absl::Status& why) override {
      FakeItem::Drop(why);
      answered = true;
      answered.notify_all();
    }
    std::atomic<bool> answered = false;
  };
  auto late = std::make_shared<Notified>("late");
  {
    Dispatcher dispatcher(scheduler, 1, [&](int, Scheduler::Batch&) {
      release.wait(false);  // busy until told otherwise
    });
    ASSERT_TRUE(scheduler.Submit(queue, {Item("busy", 8, 16)}).ok());
    late->length = 16;
    // Whether a stream is still free when it comes is a race only if "busy" was not taken yet.
    while (scheduler.Depth(*queue) > 0) std::this_thread::yield();
    late->shape.deadline_ns = clock.NowNs() + 200'000'000;  // far enough not to be over already
    ASSERT_TRUE(scheduler.Submit(queue, {late}).ok());
    late->answered.wait(false);
    release = true;
    release.notify_all();
    scheduler.Shutdown(absl::UnavailableError("done"));
  }
  EXPECT_EQ(late->dropped.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace reprise
