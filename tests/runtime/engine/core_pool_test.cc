#include "runtime/engine/core_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace reprise {
namespace {

class CorePoolTest : public testing::TestWithParam<int> {};

TEST_P(CorePoolTest, EveryPartRunsOnceACall) {
  CorePool pool(GetParam());
  ThreadTeam team;
  struct Context {
    std::array<std::atomic<int>, 8> calls{};
  } context;
  for (int round = 1; round <= 200; ++round) {
    pool.Run(
        team, 8, [](void* c, int part) { ++static_cast<Context*>(c)->calls[part]; }, &context);
    EXPECT_EQ(team.size(), GetParam());  // Nobody else is there: it gets all cores.
    for (int part = 0; part < 8; ++part) {
      EXPECT_EQ(context.calls[part], part < team.size() ? round : 0);
    }
  }
}

TEST_P(CorePoolTest, NobodyPassesABarrierBeforeAllHaveArrived) {
  CorePool pool(GetParam());
  ThreadTeam team;
  struct Context {
    ThreadTeam* team;
    std::atomic<int> arrived{0};
    std::atomic<int> early{0};
  } context{&team};
  pool.Run(
      team, 8,
      [](void* c, int) {
        Context& context = *static_cast<Context*>(c);
        for (int round = 1; round <= 500; ++round) {
          ++context.arrived;
          context.team->Barrier();
          if (context.arrived < round * context.team->size()) ++context.early;
          context.team->Barrier();
        }
      },
      &context);
  EXPECT_EQ(context.early, 0);
  EXPECT_EQ(context.arrived, 500 * team.size());
}

TEST_P(CorePoolTest, NeverMoreThreadsRunThanThereAreCores) {
  CorePool pool(GetParam());
  struct Context {
    std::atomic<int> running{0};
    std::atomic<int> most{0};
    std::atomic<int> calls{0};
  } context;
  std::vector<std::thread> leaders;
  for (int i = 0; i < GetParam() + 2; ++i) {
    leaders.emplace_back([&] {
      ThreadTeam team;
      for (int round = 0; round < 100; ++round) {
        pool.Run(
            team, 8,
            [](void* c, int part) {
              Context& context = *static_cast<Context*>(c);
              const int now = ++context.running;
              int most = context.most;
              while (now > most && !context.most.compare_exchange_weak(most, now)) {
              }
              if (part == 0) ++context.calls;
              --context.running;
            },
            &context);
      }
    });
  }
  for (std::thread& leader : leaders) leader.join();
  EXPECT_EQ(context.calls, 100 * (GetParam() + 2));
  EXPECT_LE(context.most, GetParam());
}

TEST(CorePoolTest, MaxThreadsBoundsTheTeam) {
  CorePool pool(4);
  ThreadTeam team;
  pool.Run(
      team, 2, [](void*, int) {}, nullptr);
  EXPECT_EQ(team.size(), 2);
}

INSTANTIATE_TEST_SUITE_P(Cores, CorePoolTest, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace reprise
