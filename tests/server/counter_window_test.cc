#include "server/counter_window.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace reprise {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(CounterWindowTest, GrowthIsSinceTheFirstCall) {
  CounterWindow<2> window;
  EXPECT_EQ(window.Measure(0, {5, 7}).ns, 0);
  const auto growth = window.Measure(4 * kSecond, {6, 9});
  EXPECT_EQ(growth.ns, 4 * kSecond);
  EXPECT_EQ(growth.by[0], 1);
  EXPECT_EQ(growth.by[1], 2);
  EXPECT_EQ(growth.Rate(1) * kSecond, 0.5);
}

TEST(CounterWindowTest, FirstCallHasNoRate) {
  CounterWindow<1> window;
  EXPECT_EQ(window.Measure(kSecond, {100}).Rate(0), 0);
}

TEST(CounterWindowTest, WindowMovesHoweverOftenItIsRead) {
  CounterWindow<1> window;
  // Idle for 60 s, then busy; four callers a second.
  double share = 0;
  for (int quarter = 0; quarter <= 4 * 72; ++quarter) {
    const int64_t now = quarter * kSecond / 4;
    share = window.Measure(now, {std::max<int64_t>(0, now - 60 * kSecond)}).Rate(0);
    if (quarter == 4 * 60) EXPECT_EQ(share, 0);
  }
  EXPECT_GT(share, 0.95) << "twelve seconds of work";
}

TEST(CounterWindowTest, RareCallersGetTheWholeTimeBetween) {
  CounterWindow<1> window;
  window.Measure(0, {0});
  EXPECT_EQ(window.Measure(60 * kSecond, {30 * kSecond}).Rate(0), 0.5);
  EXPECT_EQ(window.Measure(120 * kSecond, {45 * kSecond}).Rate(0), 0.25);
}

TEST(CounterWindowTest, ShortWindowForgetsSooner) {
  CounterWindow<1> window({.window_ns = kSecond, .between_samples_ns = kSecond / 10});
  for (int tenth = 0; tenth <= 30; ++tenth) {
    const int64_t now = tenth * kSecond / 10;
    const double share = window.Measure(now, {std::min(now, kSecond)}).Rate(0);
    if (tenth == 10) EXPECT_EQ(share, 1);
    if (tenth == 30) EXPECT_EQ(share, 0);
  }
}

}  // namespace
}  // namespace reprise
