#include "runtime/engine/tune/background_throttle.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/testing/time_units.h"

namespace reprise {
namespace {

// A world in which time passes only in sleeps and slices.
class BackgroundThrottleTest : public testing::Test {
 protected:
  void SetUp() override {
    spare_ = std::make_unique<BackgroundThrottle>(
        BackgroundThrottle::Options{.clock = &clock_,
                                    .asked_ns = 0,
                                    .thread_clock = &thread_clock_,
                                    .activity = [this] { return activity_; },
                                    .stopped = [this] { return stopped_; },
                                    .sleep = [this](int64_t ns) { clock_.AdvanceNs(ns); }});
  }
  // Runs a slice of work, during which others have the core as well.
  void Slice(int64_t ns, int64_t stolen_ns = 0) {
    ASSERT_TRUE(spare_->Wait());
    clock_.AdvanceNs(ns + stolen_ns);
    thread_clock_.AdvanceNs(ns);
  }

  FakeClock clock_;
  FakeClock thread_clock_;
  HelperPool::Activity activity_;
  bool stopped_ = false;
  std::unique_ptr<BackgroundThrottle> spare_;
};

TEST_F(BackgroundThrottleTest, IdleCoresGiveAllTheirTime) {
  for (int i = 0; i < 100; ++i) Slice(5 * kMs);
  // The moment that it took to see that nothing runs.
  EXPECT_LE(clock_.NowNs(), 502 * kMs);
}

TEST_F(BackgroundThrottleTest, BusyCoresGiveATwentiethAndNotLess) {
  activity_ = {.running = 1, .begun = 1};
  for (int i = 0; i < 100; ++i) Slice(5 * kMs);
  const auto share = static_cast<double>(500 * kMs) / static_cast<double>(clock_.NowNs());
  EXPECT_GE(share, 0.049);
  EXPECT_LE(share, 0.053);
}

TEST_F(BackgroundThrottleTest, WorkThatWasAskedForLongAgoGetsMore) {
  activity_ = {.running = 1, .begun = 1};
  clock_.AdvanceNs(BackgroundThrottle::kLateNs);
  SetUp();
  const int64_t start = clock_.NowNs();
  for (int i = 0; i < 100; ++i) Slice(5 * kMs);
  const auto share = static_cast<double>(500 * kMs) / static_cast<double>(clock_.NowNs() - start);
  EXPECT_GE(share, 0.115);
  EXPECT_LE(share, 0.125);
}

TEST_F(BackgroundThrottleTest, TimeThatOthersHaveTheCoreIsNotCounted) {
  activity_ = {.running = 1, .begun = 1};
  // Had only a fiftieth of the core: it need not wait at all.
  for (int i = 0; i < 10; ++i) Slice(5 * kMs, 245 * kMs);
  EXPECT_EQ(clock_.NowNs(), 2500 * kMs);
}

TEST_F(BackgroundThrottleTest, ShortGapBetweenReplaysIsNoQuiet) {
  Slice(5 * kMs);
  activity_ = {.running = 0, .begun = 7};  // one has just ended
  const int64_t before = clock_.NowNs();
  Slice(0);
  EXPECT_GE(clock_.NowNs() - before, BackgroundThrottle::kQuietNs);
  EXPECT_LE(clock_.NowNs() - before,
            BackgroundThrottle::kQuietNs + BackgroundThrottle::kLookEveryNs);
}

TEST_F(BackgroundThrottleTest, StoppedWorkGetsNoSlice) {
  stopped_ = true;
  EXPECT_FALSE(spare_->Wait());
  EXPECT_EQ(spare_->spent_ns(), 0);
}

}  // namespace
}  // namespace reprise
