#include "runtime/engine/replay/helper_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/allowed_cpus.h"
#include "runtime/engine/replay/idle_policy.h"

namespace reprise {
namespace {

class HelperPoolTest : public testing::TestWithParam<int> {};

TEST_P(HelperPoolTest, EveryPartOfEveryStepRunsOnceACall) {
  HelperPool pool(GetParam());
  struct Context {
    // Shares of a step that were run, in sixtieths: a whole step is one of 60 of them.
    std::array<std::atomic<int>, 5> shares{};
    std::atomic<int> strange{0};
  } context;
  for (int round = 1; round <= 200; ++round) {
    const int parts = pool.Run(
        8, 5,
        [](void* c, int step, int part, int parts) {
          Context& context = *static_cast<Context*>(c);
          if (part < 0 || part >= parts) ++context.strange;
          context.shares[static_cast<size_t>(step)] += 60 / parts;
        },
        &context);
    // No other leader is there: it gets all cores, except helpers on their way back.
    EXPECT_LE(parts, GetParam());
    if (round == 1) {
      EXPECT_EQ(parts, GetParam());
    }
    for (const std::atomic<int>& shares : context.shares) ASSERT_EQ(shares, 60 * round);
  }
  EXPECT_EQ(context.strange, 0);
}

// Returns the CPUs that the calling thread may run on.
std::vector<int> OwnCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(HelperPoolOnCpusTest, CallersAndHelpersRunOnThemAlone) {
  const std::vector<int> all = OwnCpus();
  ASSERT_FALSE(all.empty());
  for (size_t count = 1; count <= std::min<size_t>(all.size(), 2); ++count) {
    const std::vector<int> cpus(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
    HelperPool pool(cpus);
    struct Context {
      const std::vector<int>& cpus;
      std::atomic<int> elsewhere{0};
    } context{.cpus = cpus};
    for (int round = 0; round < 50; ++round) {
      pool.Run(
          8, 3,
          [](void* c, int, int, int) {
            Context& context = *static_cast<Context*>(c);
            // A helper keeps off the caller's CPU.
            for (const int cpu : OwnCpus()) {
              if (std::find(context.cpus.begin(), context.cpus.end(), cpu) == context.cpus.end()) {
                ++context.elsewhere;
              }
            }
          },
          &context);
    }
    EXPECT_EQ(context.elsewhere, 0);
    EXPECT_EQ(pool.cores(), static_cast<int>(count));
    EXPECT_EQ(OwnCpus(), all) << "the caller is where it was before";
  }
  EXPECT_EQ(AllowedCpus::Forbidden(all), -1);
  EXPECT_EQ(AllowedCpus::Forbidden({all[0], CPU_SETSIZE}), CPU_SETSIZE);
}

TEST_P(HelperPoolTest, NeverMoreThreadsRunThanThereAreCores) {
  HelperPool pool(GetParam(), nullptr, std::chrono::seconds(60));
  struct Context {
    std::atomic<int> running{0};
    std::atomic<int> most{0};
    std::atomic<int> shares{0};
  } context;
  std::vector<std::thread> callers;
  for (int i = 0; i < GetParam() + 2; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        pool.Run(
            8, 3,
            [](void* c, int, int, int parts) {
              Context& context = *static_cast<Context*>(c);
              const int now = ++context.running;
              int most = context.most;
              while (now > most && !context.most.compare_exchange_weak(most, now)) {
              }
              context.shares += 60 / parts;
              --context.running;
            },
            &context);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(context.shares, 60 * 3 * 100 * (GetParam() + 2));
  EXPECT_LE(context.most, GetParam());
}

TEST_P(HelperPoolTest, ACallThatKeepsAllCoresDoesNotKeepOthersWaiting) {
  HelperPool pool(GetParam());
  struct Context {
    std::atomic<int> begun{0};
    std::atomic<bool> others_are_through{false};
  } context;
  std::thread longest([&] {
    pool.Run(
        8, 1,
        [](void* c, int, int, int) {
          Context& context = *static_cast<Context*>(c);
          ++context.begun;
          while (!context.others_are_through) std::this_thread::yield();
        },
        &context);
  });
  while (context.begun == 0) std::this_thread::yield();
  std::atomic<int> shares{0};
  for (int i = 0; i < 3; ++i) {
    pool.Run(
        8, 2,
        [](void* c, int, int, int parts) { *static_cast<std::atomic<int>*>(c) += 60 / parts; },
        &shares);
  }
  EXPECT_EQ(shares, 3 * 2 * 60);
  context.others_are_through = true;
  longest.join();
  // Nothing of that is left.
  shares = 0;
  EXPECT_LE(
      pool.Run(
          8, 1,
          [](void* c, int, int, int parts) { *static_cast<std::atomic<int>*>(c) += 60 / parts; },
          &shares),
      GetParam());
  EXPECT_EQ(shares, 60);
  EXPECT_EQ(pool.activity().running, 0);
}

TEST_P(HelperPoolTest, NobodyUsesTheContextAfterTheCall) {
  HelperPool pool(GetParam());
  const auto count = [](void* c, int, int, int parts) {
    *static_cast<std::atomic<int>*>(c) += 60 / parts;
  };
  for (int round = 0; round < 500; ++round) {
    auto context = std::make_unique<std::atomic<int>>(0);
    pool.Run(8, 2, count, context.get());
    ASSERT_EQ(*context, 120);
    // Memory that is given back here is seen by a sanitizer if a helper still comes.
  }
}

TEST(HelperPoolTest, HelperOnItsWayOutDoesNotCostTheNextCallItsCore) {
  HelperPool pool(2);
  for (int round = 0; round < 20; ++round) {
    struct Context {
      std::thread::id leader = std::this_thread::get_id();
      std::atomic<bool> helped{false};
    } context;
    const int parts = pool.Run(
        2, 2,
        [](void* c, int step, int, int parts) {
          Context& context = *static_cast<Context*>(c);
          if (std::this_thread::get_id() != context.leader) {
            context.helped = true;
            return;
          }
          // A leader that was stopped at first may run the whole step: then no thread can help.
          while (parts > 1 && !context.helped) std::this_thread::yield();
          // Long enough for the helper to park.
          const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
          while (step == 1 && std::chrono::steady_clock::now() < end) {
          }
        },
        &context);
    ASSERT_EQ(parts, 2) << "in round " << round;
  }
}

// Waits for a condition that another thread is about to meet; returns false after ten seconds.
bool Comes(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// The clock stands still, so that helpers park for want of a core alone.
class LingeringTest : public testing::Test {
 protected:
  // Holds a core by a call of one thread until it is let go.
  void HoldACore() {
    callers_.emplace_back([this] {
      pool_.Run(
          1, 1,
          [](void* test, int, int, int) {
            auto& self = *static_cast<LingeringTest*>(test);
            ++self.held_;
            while (!self.let_go_) std::this_thread::yield();
          },
          this);
    });
    const int held = static_cast<int>(callers_.size());
    EXPECT_TRUE(Comes([&] { return held_ == held; }));
  }
  bool Lingering(int helpers) {
    return Comes([&] { return pool_.activity().lingering == helpers; });
  }
  bool LingeringAtMost(int helpers) {
    return Comes([&] { return pool_.activity().lingering <= helpers; });
  }
  void TearDown() override {
    let_go_ = true;
    for (std::thread& caller : callers_) caller.join();
  }

  FakeClock clock_;
  std::atomic<int> held_{0};
  std::atomic<bool> let_go_{false};
  HelperPool pool_{3, &clock_};
  std::vector<std::thread> callers_;
};

TEST_F(LingeringTest, HelpersParkWhenTheirTimeIsOver) {
  ASSERT_TRUE(Lingering(2));
  clock_.AdvanceNs(IdlePolicy::kLongestNs);
  EXPECT_TRUE(Lingering(0));
}

TEST_F(LingeringTest, NoMoreHelpersStayAwakeThanCoresAreFree) {
  ASSERT_TRUE(Lingering(2));
  HoldACore();
  // Two cores are left for both: had one gone, it would not come back.
  EXPECT_EQ(pool_.activity().lingering, 2);
  HoldACore();
  EXPECT_TRUE(LingeringAtMost(1));
  HoldACore();
  EXPECT_TRUE(Lingering(0));
}

TEST_F(LingeringTest, AParkedHelperIsWokenByTheNextCall) {
  // Their time begins with them: one that starts late would stay awake for ever.
  ASSERT_TRUE(Lingering(2));
  clock_.AdvanceNs(IdlePolicy::kLongestNs);
  ASSERT_TRUE(Lingering(0));
  struct Context {
    std::thread::id leader = std::this_thread::get_id();
    std::atomic<bool> helped{false};
  } context;
  pool_.Run(
      2, 1,
      [](void* c, int, int, int parts) {
        Context& context = *static_cast<Context*>(c);
        if (std::this_thread::get_id() != context.leader) context.helped = true;
        const bool came = parts == 1 || Comes([&] { return context.helped.load(); });
        EXPECT_TRUE(came);
      },
      &context);
}

std::vector<int> CpusOfThisThread() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<int> cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cpus.push_back(i);
  }
  return cpus;
}

TEST(HelperPoolTest, HelpersKeepOffTheCpuOfTheCaller) {
  const std::vector<int> cpus = CpusOfThisThread();
  if (cpus.size() < 2) GTEST_SKIP() << "of one CPU nobody can keep off";
  HelperPool pool(2);
  struct Context {
    std::thread::id leader = std::this_thread::get_id();
    std::atomic<bool> helped{false};
    std::vector<int> cpus;  // the helper's
  };
  // The process's first thread keeps all CPUs: helpers may use those that it may use.
  std::thread([&] {
    for (const int cpu : {cpus[0], cpus[1], cpus[0]}) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
      std::vector<int> others = cpus;
      std::erase(others, cpu);
      // A helper is moved where it has parked, which takes it a moment.
      const auto kept_off = [&] {
        Context context;
        pool.Run(
            2, 1,
            [](void* c, int, int, int parts) {
              Context& context = *static_cast<Context*>(c);
              if (std::this_thread::get_id() != context.leader && !context.helped) {
                context.cpus = CpusOfThisThread();
                context.helped = true;
              }
              const bool came = parts == 1 || Comes([&] { return context.helped.load(); });
              EXPECT_TRUE(came);
            },
            &context);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return context.helped && context.cpus == others;
      };
      EXPECT_TRUE(Comes(kept_off)) << "CPU " << cpu;
    }
  }).join();
}

TEST(HelperPoolTest, MaxThreadsBoundsTheParts) {
  HelperPool pool(4);
  EXPECT_EQ(pool.Run(
                2, 1, [](void*, int, int, int) {}, nullptr),
            2);
}

INSTANTIATE_TEST_SUITE_P(Cores, HelperPoolTest, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace reprise
