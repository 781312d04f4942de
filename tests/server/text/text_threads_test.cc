#include "server/text/text_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "server/text/text_memory.h"

namespace reprise {
namespace {

TEST(TextThreadsTest, EveryTaskThatIsTakenRunsAndIsToldThatTheThreadsStop) {
  TextThreads threads;
  EXPECT_FALSE(threads.Run([] {}));
  ASSERT_TRUE(threads.Start(1).ok());
  std::atomic<bool> begun = false;
  std::atomic<int> told = 0;
  ASSERT_TRUE(threads.Run([&] {
    begun = true;
    while (threads.GoOn().ok()) std::this_thread::yield();
    ++told;
  }));
  while (!begun) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(threads.Run([&] { told += threads.GoOn().ok() ? 0 : 1; }));
  }
  threads.Stop();
  EXPECT_EQ(told, 11);
  EXPECT_FALSE(threads.Run([] {}));
  EXPECT_EQ(threads.GoOn().code(), absl::StatusCode::kUnavailable);
}

TEST(TextMemoryTest, ATextWaitsForItsShareAndIsToldToEndMeanwhile) {
  TextMemory memory(100);
  int asked = 0;
  const std::function<absl::Status()> twice = [&] {
    return ++asked < 3 ? absl::OkStatus() : absl::DeadlineExceededError("late");
  };
  {
    const auto first = memory.Wait(60, nullptr);
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE(memory.Wait(40, nullptr).ok());
    EXPECT_EQ(memory.Wait(41, twice).status(), absl::DeadlineExceededError("late"));
  }
  // More than there is means alone.
  const auto all = memory.Wait(1000, nullptr);
  ASSERT_TRUE(all.ok());
  asked = 0;
  EXPECT_FALSE(memory.Wait(1, twice).ok());
}

TEST(TextMemoryTest, AShareIsGivenToTheNextOne) {
  TextMemory memory(100);
  std::atomic<bool> waits = false;
  std::optional<absl::StatusOr<TextMemory::Share>> share;
  share.emplace(memory.Wait(100, nullptr));
  std::thread next([&] {
    EXPECT_TRUE(memory
                    .Wait(1,
                          [&] {
                            waits = true;
                            return absl::OkStatus();
                          })
                    .ok());
  });
  while (!waits) std::this_thread::yield();
  share.reset();
  next.join();
}

}  // namespace
}  // namespace reprise
