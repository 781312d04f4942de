#include "runtime/batching/drain_rate.h"

#include <gtest/gtest.h>

#include "tests/testing/time_units.h"

namespace reprise {
namespace {

TEST(DrainRateTest, NothingIsKnownBeforeABatchHasFinished) {
  DrainRate rate;
  EXPECT_EQ(rate.tokens_per_second(), 0);
  rate.OnTake(0, 100, false);
  EXPECT_EQ(rate.tokens_per_second(), 0);
}

TEST(DrainRateTest, BatchesOnStreamsStandForABacklogThatNobodyHasSeen) {
  DrainRate rate;
  rate.OnFinished(100, 100 * kMs, 2);
  EXPECT_DOUBLE_EQ(rate.tokens_per_second(), 2000);
}

TEST(DrainRateTest, BacklogIsMeasuredFromBatchToBatch) {
  DrainRate rate;
  rate.OnFinished(100, 1 * kMs, 2);  // fast, before other models came
  for (int i = 0; i <= 10; ++i) rate.OnTake(i * 100 * kMs, 50, true);
  EXPECT_NEAR(rate.tokens_per_second(), 500, 1);
}

TEST(DrainRateTest, TimeInWhichNothingWaitsDoesNotCount) {
  DrainRate rate;
  for (int i = 0; i <= 10; ++i) rate.OnTake(i * 100 * kMs, 50, true);
  rate.OnEmpty();
  // A minute later, one by one: no backlog, no measurement.
  for (int i = 0; i <= 10; ++i) rate.OnTake((60'000 + i * 1000) * kMs, 5, false);
  EXPECT_NEAR(rate.tokens_per_second(), 500, 1);
}

TEST(DrainRateTest, ChangesAreFollowedWithinSeconds) {
  DrainRate rate;
  int64_t now = 0;
  for (int i = 0; i <= 100; ++i) rate.OnTake(now += 100 * kMs, 50, true);
  for (int i = 0; i <= 60; ++i) rate.OnTake(now += 100 * kMs, 5, true);
  EXPECT_LT(rate.tokens_per_second(), 100);
}

}  // namespace
}  // namespace reprise
