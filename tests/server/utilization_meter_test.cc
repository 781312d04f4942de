#include "server/utilization_meter.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(UtilizationMeterTest, ShareIsOfAllStreamsSinceTheFirstCall) {
  UtilizationMeter meter;
  EXPECT_EQ(meter.Measure(0, 0, 2), 0);
  EXPECT_EQ(meter.Measure(4 * kSecond, 2 * kSecond, 2), 0.25);
  EXPECT_EQ(meter.Measure(8 * kSecond, 8 * kSecond, 2), 0.5);
}

TEST(UtilizationMeterTest, WindowMovesHoweverOftenSomebodyAsks) {
  UtilizationMeter meter;
  // Idle for 60 s, then both streams are busy; four callers a second.
  double share = 0;
  for (int quarter = 0; quarter <= 4 * 72; ++quarter) {
    const int64_t now = quarter * kSecond / 4;
    share = meter.Measure(now, 2 * std::max<int64_t>(0, now - 60 * kSecond), 2);
    if (quarter == 4 * 60) EXPECT_EQ(share, 0);
  }
  EXPECT_GT(share, 0.95) << "twelve seconds of work";
}

TEST(UtilizationMeterTest, RareCallersGetTheWholeTimeBetween) {
  UtilizationMeter meter;
  meter.Measure(0, 0, 1);
  EXPECT_EQ(meter.Measure(60 * kSecond, 30 * kSecond, 1), 0.5);
  EXPECT_EQ(meter.Measure(120 * kSecond, 45 * kSecond, 1), 0.25);
}

}  // namespace
}  // namespace reprise
