#include "runtime/engine/tune/tuning_queue.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace reprise {
namespace {

constexpr int64_t kRetry = TuningQueue::kRetryNs;

TEST(TuningQueueTest, RecipeIsQueuedOnceUntilItsTurnHasEnded) {
  TuningQueue wishes;
  EXPECT_TRUE(wishes.Begin(1, /*exact=*/false, 0));
  EXPECT_FALSE(wishes.Begin(1, false, 5));
  wishes.End(1, absl::OkStatus(), 10);
  EXPECT_EQ(wishes.size(), 0);
  EXPECT_TRUE(wishes.Begin(1, false, 20));
}

TEST(TuningQueueTest, ExactShapeWaitsForItsSecondReplay) {
  TuningQueue wishes;
  EXPECT_FALSE(wishes.Begin(1, /*exact=*/true, 0));
  EXPECT_TRUE(wishes.Begin(1, true, 1));
}

TEST(TuningQueueTest, WhatLackedMemoryIsTriedAgainLater) {
  TuningQueue wishes;
  ASSERT_TRUE(wishes.Begin(1, false, 0));
  wishes.End(1, absl::ResourceExhaustedError("no room"), 100);
  EXPECT_FALSE(wishes.Begin(1, false, 100 + kRetry - 1));
  EXPECT_TRUE(wishes.Begin(1, false, 100 + kRetry));
}

TEST(TuningQueueTest, WhatLacksMemoryForLongIsTriedEverMoreSeldom) {
  TuningQueue wishes;
  int64_t now = 0, waited = 0;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(wishes.Begin(1, false, now));
    wishes.End(1, absl::ResourceExhaustedError("no room"), now);
    waited = std::min(i == 0 ? kRetry : 2 * waited, TuningQueue::kMostRetryNs);
    EXPECT_FALSE(wishes.Begin(1, false, now + waited - 1));
    now += waited;
  }
  EXPECT_EQ(waited, TuningQueue::kMostRetryNs);
}

TEST(TuningQueueTest, WhatFailedOtherwiseIsNotTriedAgain) {
  TuningQueue wishes;
  ASSERT_TRUE(wishes.Begin(1, false, 0));
  wishes.End(1, absl::InternalError("a bug"), 100);
  EXPECT_FALSE(wishes.Begin(1, false, 1000 * kRetry));
}

TEST(TuningQueueTest, FailuresAreForgottenBeforeTheyTakeMuchMemoryAndWhatIsQueuedStays) {
  TuningQueue wishes;
  ASSERT_TRUE(wishes.Begin(0, false, 0));
  for (uint64_t key = 1; key <= 3 * TuningQueue::kMost; ++key) {
    ASSERT_TRUE(wishes.Begin(key, false, 0));
    wishes.End(key, absl::InternalError("a bug"), 0);
    ASSERT_LE(wishes.size(), TuningQueue::kMost);
  }
  EXPECT_FALSE(wishes.Begin(0, false, 1)) << "it waits still";
}

}  // namespace
}  // namespace reprise
