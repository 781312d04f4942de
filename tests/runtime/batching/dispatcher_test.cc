#include "runtime/batching/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "tests/runtime/batching/fake_items.h"

namespace reprise {
namespace {

// Threads, but no sleeps: leaders answer everything that several clients submit.
TEST(DispatcherTest, EveryItemIsExecutedOnceByOneOfTheStreams) {
  SteadyClock clock;
  TestScheduler scheduler(clock);
  auto queue = scheduler.AddModel(TestOptions());
  std::atomic<int> executed = 0;
  std::atomic<int> bad_streams = 0;
  constexpr int kClients = 4;
  constexpr int kRequests = 200;
  {
    Dispatcher<FakeItem> dispatcher(scheduler, 2, [&](int stream, TestScheduler::Batch& batch) {
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
  TestScheduler scheduler(clock);
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
    Dispatcher<FakeItem> dispatcher(scheduler, 1, [&](int, TestScheduler::Batch&) {
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
