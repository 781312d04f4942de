#include "runtime/engine/replay/launch_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace reprise {
namespace {

constexpr int kParts = 3;

// Notes which thread ran which part; a thread can be stopped within a part.
class Steps {
 public:
  static void Run(void* steps, int step, int part, int parts) {
    static_cast<Steps*>(steps)->Note(step, part, parts);
  }

  // Makes the thread that runs `part` of `step` stay in it until Release.
  void Hold(int step, int part) {
    std::lock_guard lock(mutex_);
    held_ = {step, part};
  }
  void AwaitHeld() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return holding_; });
  }
  void Release() {
    std::lock_guard lock(mutex_);
    held_ = {-1, -1};
    changed_.notify_all();
  }
  void AwaitParts(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return runs_ >= count; });
  }

  // Shares of each step that are done, in sixtieths.
  std::vector<int> shares() const {
    std::lock_guard lock(mutex_);
    return shares_;
  }
  int runs_by(std::thread::id thread) const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(std::count(threads_.begin(), threads_.end(), thread));
  }
  bool early() const { return early_; }

 private:
  void Note(int step, int part, int parts) {
    std::unique_lock lock(mutex_);
    // Everything before is done.
    if (step > 0 && shares_[static_cast<size_t>(step - 1)] != 60) early_ = true;
    if (held_ == std::pair(step, part)) {
      holding_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return held_ != std::pair(step, part); });
    }
    if (shares_.size() <= static_cast<size_t>(step)) shares_.resize(static_cast<size_t>(step) + 1);
    shares_[static_cast<size_t>(step)] += 60 / parts;
    threads_.push_back(std::this_thread::get_id());
    ++runs_;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> shares_;
  std::vector<std::thread::id> threads_;
  std::pair<int, int> held_ = {-1, -1};
  bool holding_ = false;
  bool early_ = false;
  int runs_ = 0;
};

// Returns a helper that comes for the first steps only, as one whose core the system gives to
// others.
LaunchWorkers::Sequence FirstOf(const LaunchWorkers::Sequence& sequence, uint32_t steps) {
  LaunchWorkers::Sequence first = sequence;
  first.steps = steps;
  return first;
}

TEST(LaunchWorkersTest, LeaderDoesAllWhereNobodyComes) {
  LaunchWorkers workers(kParts);
  for (int round = 0; round < 3; ++round) {
    Steps steps;
    workers.Lead(workers.Begin(Steps::Run, &steps, 4, kParts));
    EXPECT_THAT(steps.shares(), testing::ElementsAre(60, 60, 60, 60));
  }
}

TEST(LaunchWorkersTest, WhoComesAfterTheEndFindsNothingToDo) {
  LaunchWorkers workers(kParts);
  Steps steps, more_steps;
  const LaunchWorkers::Sequence sequence = workers.Begin(Steps::Run, &steps, 4, kParts);
  workers.Lead(sequence);
  std::thread([&] { workers.Help(sequence, 1); }).join();
  EXPECT_THAT(steps.shares(), testing::Each(60));
  // Nor during the next sequence.
  const LaunchWorkers::Sequence next = workers.Begin(Steps::Run, &more_steps, 4, kParts);
  std::thread([&] { workers.Help(sequence, 2); }).join();
  EXPECT_THAT(more_steps.shares(), testing::IsEmpty());
  workers.Lead(next);
  EXPECT_THAT(more_steps.shares(), testing::ElementsAre(60, 60, 60, 60));
}

TEST(LaunchWorkersTest, OthersTakeThePartsOfOneThatIsStopped) {
  LaunchWorkers workers(kParts);
  Steps steps;
  const LaunchWorkers::Sequence sequence = workers.Begin(Steps::Run, &steps, 1, kParts);
  steps.Hold(0, 1);
  std::thread stopped([&] { workers.Help(sequence, 1); });
  steps.AwaitHeld();
  // It holds one part of three; thread 2 never comes.
  std::thread leader([&] { workers.Lead(sequence); });
  const std::thread::id leader_id = leader.get_id();
  steps.AwaitParts(kParts - 1);
  EXPECT_EQ(steps.runs_by(leader_id), kParts - 1);
  steps.Release();
  leader.join();
  stopped.join();
  EXPECT_THAT(steps.shares(), testing::ElementsAre(60));
}

TEST(LaunchWorkersTest, AParkedLeaderIsWokenByTheOneThatItWaitsFor) {
  LaunchWorkers workers(kParts);
  Steps steps;
  const LaunchWorkers::Sequence sequence = workers.Begin(Steps::Run, &steps, 2, kParts);
  steps.Hold(0, 1);
  std::thread stopped([&] { workers.Help(FirstOf(sequence, 1), 1); });
  steps.AwaitHeld();
  std::thread leader([&] { workers.Lead(sequence); });
  while (workers.parked() == 0) std::this_thread::yield();
  EXPECT_EQ(workers.wakes(), 0u);
  steps.Release();
  leader.join();
  stopped.join();
  EXPECT_EQ(workers.wakes(), 1u);
  EXPECT_EQ(workers.parked(), 0u);
}

TEST(LaunchWorkersTest, NobodyIsWokenWhereNobodyIsParked) {
  LaunchWorkers workers(kParts);
  Steps steps;
  workers.Lead(workers.Begin(Steps::Run, &steps, 100, kParts));
  EXPECT_EQ(workers.wakes(), 0u);
}

TEST(LaunchWorkersTest, LeaderGoesBackToWholeStepsWhenItsHelperIsGone) {
  struct Context {
    std::thread::id leader = std::this_thread::get_id();
    std::atomic<bool> helped{false};
    int last_parts = 0;
  } context;
  LaunchWorkers workers(kParts);
  // So many that the time in which the leader goes part by part anyhow is over.
  const LaunchWorkers::Sequence sequence = workers.Begin(
      [](void* c, int step, int, int parts) {
        Context& context = *static_cast<Context*>(c);
        if (std::this_thread::get_id() != context.leader) {
          context.helped = true;
          return;
        }
        // A leader that was stopped at first may run the whole step: then no thread can help.
        while (step == 0 && parts > 1 && !context.helped) std::this_thread::yield();
        if (step == 299'999) context.last_parts = parts;
      },
      &context, 300'000, kParts);
  std::thread helper([&] { workers.Help(FirstOf(sequence, 10), 1); });
  workers.Lead(sequence);
  helper.join();
  EXPECT_EQ(context.last_parts, 1);
}

// Memory without a lock: all parts of a step see the writes of the step before. A missing order
// shows under a thread sanitizer, or where a thread reads too early.
TEST(LaunchWorkersTest, EachStepSeesWhatTheOneBeforeWrote) {
  constexpr int kSteps = 400;
  struct Context {
    std::array<std::array<int, kParts>, kSteps> cells{};
    std::array<int, kParts> wrong{};
    std::atomic<int> step{0};  // relaxed: it orders nothing
    void Fill(int step, int part) {
      for (int other = 0; step > 0 && other < kParts; ++other) {
        if (cells[static_cast<size_t>(step - 1)][static_cast<size_t>(other)] != step + other) {
          ++wrong[static_cast<size_t>(part)];
        }
      }
      cells[static_cast<size_t>(step)][static_cast<size_t>(part)] = step + 1 + part;
    }
  };
  LaunchWorkers workers(kParts);
  Context context;
  for (int round = 0; round < 50; ++round) {
    context.cells = {};  // The leader's thread clears them: they are no longer read.
    context.step.store(0, std::memory_order_relaxed);
    const LaunchWorkers::Sequence sequence = workers.Begin(
        [](void* c, int step, int part, int parts) {
          Context& context = *static_cast<Context*>(c);
          context.step.store(step, std::memory_order_relaxed);
          for (int p = part; p < (parts == 1 ? kParts : part + 1); ++p) context.Fill(step, p);
        },
        &context, kSteps, kParts);
    // One is there from the beginning and leaves, the other comes in the midst of it.
    std::thread early([&] { workers.Help(FirstOf(sequence, kSteps / 2), 1); });
    std::thread late([&] {
      while (context.step.load(std::memory_order_relaxed) < kSteps / 4) std::this_thread::yield();
      workers.Help(sequence, 2);
    });
    workers.Lead(sequence);
    for (int part = 0; part < kParts; ++part) {
      ASSERT_EQ(context.cells[kSteps - 1][static_cast<size_t>(part)], kSteps + part);
    }
    early.join();
    late.join();
    ASSERT_THAT(context.wrong, testing::Each(0));
  }
}

TEST(LaunchWorkersTest, StepsRunInOrderAndEveryPartOnceHoweverManyHelp) {
  LaunchWorkers workers(kParts);
  for (int round = 0; round < 100; ++round) {
    Steps steps;
    const LaunchWorkers::Sequence sequence = workers.Begin(Steps::Run, &steps, 50, kParts);
    std::thread one([&] { workers.Help(sequence, 1); });
    std::thread two([&] { workers.Help(sequence, 2); });
    workers.Lead(sequence);
    one.join();
    two.join();
    ASSERT_THAT(steps.shares(), testing::Each(60));
    ASSERT_EQ(steps.shares().size(), 50u);
    ASSERT_FALSE(steps.early());
  }
}

}  // namespace
}  // namespace reprise
