#include "server/arena_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <limits>
#include <optional>
#include <thread>

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

Recipe RecipeOf(size_t arena_bytes) {
  Recipe recipe;
  recipe.arena_bytes = arena_bytes;
  return recipe;
}

class ArenaKeeperTest : public testing::Test {
 protected:
  void Add(ArenaKeeper& keeper) {
    auto stream = Stream::Create({.max_arena_bytes = 64 << 20});
    ASSERT_TRUE(stream.ok());
    keeper.Add(*std::move(stream));
  }
  static void Use(ArenaKeeper& keeper, size_t i) {
    keeper.Run(i, [](Stream& stream) { ASSERT_TRUE(stream.Reserve(RecipeOf(1 << 20)).ok()); });
  }

  FakeClock clock_;
};

TEST_F(ArenaKeeperTest, WithoutATimeMemoryStays) {
  ArenaKeeper keeper(clock_);
  Add(keeper);
  Use(keeper, 0);
  clock_.AdvanceNs(int64_t{1} << 60);
  EXPECT_EQ(keeper.ReleaseIdle(), kNever);
  EXPECT_EQ(keeper.held_bytes(), 1 << 20);
}

TEST_F(ArenaKeeperTest, ALargeArenaGoesBackOnceNoReplayNeedsIt) {
  constexpr size_t kLarge = ArenaKeeper::kLargeBytes + 1;
  ArenaKeeper keeper(clock_);
  auto made = Stream::Create({.max_arena_bytes = size_t{1} << 30});
  ASSERT_TRUE(made.ok());
  keeper.Add(*std::move(made));
  const auto need = [&](size_t bytes) {
    keeper.Run(0, [&](Stream& stream) { ASSERT_TRUE(stream.Reserve(RecipeOf(bytes)).ok()); });
  };
  need(kLarge);
  EXPECT_EQ(keeper.ReleaseIdle(), ArenaKeeper::kLargeIdleNs);
  // Traffic that needs little does not keep it.
  for (int i = 0; i < 6; ++i) {
    clock_.AdvanceNs(ArenaKeeper::kLargeIdleNs / 6);
    if (i < 5) need(1 << 20);
  }
  EXPECT_EQ(keeper.ReleaseIdle(), kNever);
  EXPECT_EQ(keeper.held_bytes(), 0);
  // A replay that needs it keeps it.
  need(kLarge);
  clock_.AdvanceNs(ArenaKeeper::kLargeIdleNs / 2);
  need(kLarge);
  EXPECT_EQ(keeper.ReleaseIdle(), clock_.NowNs() + ArenaKeeper::kLargeIdleNs);
  EXPECT_EQ(keeper.held_bytes(), static_cast<int64_t>(kLarge));
}

TEST_F(ArenaKeeperTest, WhatDataDecideGoesBackInSecondsWhateverTheTrafficBesideIt) {
  MemoryBudget data(96 << 20);
  ArenaKeeper keeper(clock_);
  for (int i = 0; i < 2; ++i) {
    auto made = Stream::Create({.max_arena_bytes = size_t{256} << 20,
                                .data_memory = &data,
                                .make_room = [&] { keeper.ReleaseUnused(); }});
    ASSERT_TRUE(made.ok());
    keeper.Add(*std::move(made));
  }
  const auto need = [&](size_t i, size_t bytes, SizedBy sized_by) {
    absl::Status status;
    keeper.Run(i, [&](Stream& stream) { status = stream.Reserve(RecipeOf(bytes), sized_by); });
    return status;
  };
  ASSERT_TRUE(need(0, 64 << 20, SizedBy::kData).ok());
  EXPECT_EQ(data.used(), 64 << 20);
  EXPECT_EQ(keeper.ReleaseIdle(), ArenaKeeper::kDataIdleNs);
  clock_.AdvanceNs(ArenaKeeper::kDataIdleNs / 2);
  ASSERT_TRUE(need(0, 1 << 20, SizedBy::kShapes).ok());
  clock_.AdvanceNs(ArenaKeeper::kDataIdleNs / 2);
  EXPECT_EQ(keeper.ReleaseIdle(), kNever);
  EXPECT_EQ(keeper.held_bytes(), 0);
  EXPECT_EQ(data.used(), 0);
  // A smaller need does not keep the memory that a larger one has left.
  ASSERT_TRUE(need(0, 64 << 20, SizedBy::kData).ok());
  clock_.AdvanceNs(ArenaKeeper::kDataIdleNs / 2);
  ASSERT_TRUE(need(0, 20 << 20, SizedBy::kData).ok());
  clock_.AdvanceNs(ArenaKeeper::kDataIdleNs / 2);
  EXPECT_EQ(keeper.ReleaseIdle(), kNever);
  EXPECT_EQ(keeper.held_bytes(), 0);
  // Shapes are not data.
  ASSERT_TRUE(need(0, 128 << 20, SizedBy::kShapes).ok());
  EXPECT_EQ(data.used(), 0);
  // More than all requests may have never fits; a stream that is idle makes room, one that runs
  // does not.
  const absl::Status never = need(0, 128 << 20, SizedBy::kData);
  EXPECT_EQ(never.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(never.message(), HasSubstr("needs 134217728 bytes"));
  EXPECT_THAT(never.message(), HasSubstr("may be 100663296"));
  ASSERT_TRUE(need(0, 64 << 20, SizedBy::kData).ok());
  EXPECT_TRUE(need(1, 64 << 20, SizedBy::kData).ok());
  EXPECT_EQ(data.used(), 64 << 20);
  keeper.Run(0, [&](Stream&) {
    EXPECT_EQ(need(1, 96 << 20, SizedBy::kData).code(), absl::StatusCode::kOk);
  });
  keeper.Run(1, [&](Stream&) {
    EXPECT_EQ(need(0, 32 << 20, SizedBy::kData).code(), absl::StatusCode::kResourceExhausted);
  });
}

TEST_F(ArenaKeeperTest, MemoryGoesBackOnceNothingRanForTheShortestTimeThatWasSet) {
  std::atomic<int> releases{0};
  std::optional<ArenaKeeper> made;
  ArenaKeeper& keeper = made.emplace(clock_, [&] { ++releases; });
  Add(keeper);
  Add(keeper);
  keeper.ReleaseAfter(500 * kMs);
  keeper.ReleaseAfter(100 * kMs);
  keeper.ReleaseAfter(0);
  Use(keeper, 0);
  clock_.AdvanceNs(60 * kMs);
  Use(keeper, 1);
  EXPECT_EQ(keeper.held_bytes(), 2 << 20);
  clock_.AdvanceNs(50 * kMs);
  EXPECT_EQ(keeper.ReleaseIdle(), 160 * kMs);
  EXPECT_EQ(keeper.held_bytes(), 1 << 20);
  clock_.AdvanceNs(50 * kMs);
  EXPECT_EQ(keeper.ReleaseIdle(), kNever);
  EXPECT_EQ(keeper.held_bytes(), 0);
  made.reset();
  EXPECT_EQ(releases, 2);
}

TEST_F(ArenaKeeperTest, MemoryStaysWhileWorkRuns) {
  SteadyClock clock;  // the keeper's own thread does the releasing
  std::promise<void> released;
  std::atomic<bool> running{false};
  std::atomic<bool> once{false};
  ArenaKeeper keeper(clock, [&] {
    EXPECT_FALSE(running);
    if (!once.exchange(true)) released.set_value();
  });
  Add(keeper);
  keeper.ReleaseAfter(1);
  keeper.Run(0, [&](Stream& stream) {
    running = true;
    const Recipe recipe = RecipeOf(8 << 20);
    ASSERT_TRUE(stream.Reserve(recipe).ok());
    std::byte* bytes = stream.MakeFrame(recipe, nullptr, nullptr).arena;
    for (int round = 0; round < 20; ++round) {
      std::memset(bytes, round + 1, recipe.arena_bytes);
      for (size_t i = 0; i < recipe.arena_bytes; i += 4096) {
        ASSERT_EQ(bytes[i], std::byte(round + 1));
      }
    }
    running = false;
  });
  released.get_future().wait();
  EXPECT_EQ(keeper.held_bytes(), 0);
}

TEST_F(ArenaKeeperTest, WorkThatNeedsRoomGetsWhatIdleStreamsHoldAndKeepsItsOwn) {
  // Together 4 MiB: a stream gets more than its share once another one has let go of it.
  MemoryBudget budget(4 << 20);
  ArenaKeeper keeper(clock_);
  for (int i = 0; i < 3; ++i) {
    auto stream = Stream::Create({.max_arena_bytes = 64 << 20, .memory = &budget, .make_room = [&] {
                                    keeper.ReleaseUnused();
                                  }});
    ASSERT_TRUE(stream.ok());
    keeper.Add(*std::move(stream));
  }
  const auto use = [&](size_t i, size_t bytes) {
    absl::Status status;
    keeper.Run(i, [&](Stream& stream) { status = stream.Reserve(RecipeOf(bytes)); });
    return status;
  };
  EXPECT_TRUE(use(0, 2 << 20).ok());
  EXPECT_TRUE(use(1, 2 << 20).ok());
  EXPECT_EQ(budget.used(), 4 << 20);
  EXPECT_TRUE(use(2, 3 << 20).ok());
  EXPECT_EQ(budget.used(), 3 << 20);
  EXPECT_TRUE(use(2, 4 << 20).ok());  // its own stays meanwhile
  EXPECT_EQ(budget.used(), 4 << 20);
  // Memory that is in use cannot be taken by another user.
  keeper.Run(2, [&](Stream&) {
    const absl::Status none = use(0, 1 << 20);
    EXPECT_EQ(none.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(none.message()), HasSubstr("of the 4194304"));
    EXPECT_THAT(std::string(none.message()), HasSubstr("--arena-memory-mb"));
  });
  EXPECT_TRUE(use(0, 1 << 20).ok());
  EXPECT_EQ(budget.used(), 1 << 20);
  EXPECT_EQ(use(1, 5 << 20).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ArenaKeeperTest, TouchedMemoryOfEveryStreamIsThereAndGoesBackToo) {
  ArenaKeeper keeper(clock_);
  Add(keeper);
  Add(keeper);
  keeper.ReleaseAfter(kMs);
  keeper.Touch(3 << 20);
  EXPECT_EQ(keeper.held_bytes(), 6 << 20);
  clock_.AdvanceNs(2 * kMs);
  keeper.ReleaseIdle();
  EXPECT_EQ(keeper.held_bytes(), 0);
}

}  // namespace
}  // namespace reprise
