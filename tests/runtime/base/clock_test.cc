#include "runtime/base/clock.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(ClockTest, SteadyClockNeverGoesBack) {
  SteadyClock clock;
  int64_t last = clock.NowNs();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = clock.NowNs();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, FakeClockMovesWhenTold) {
  FakeClock clock;
  const int64_t start = clock.NowNs();
  EXPECT_EQ(clock.NowNs(), start);
  clock.AdvanceNs(5);
  EXPECT_EQ(clock.NowNs(), start + 5);
}

}  // namespace
}  // namespace reprise
