#include "runtime/generate/step_times.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

// Returns the time of a step: a step of 32 us, and 1 us for each token after 16.
int64_t Ns(int64_t tokens) { return 32000 + 1000 * (tokens > 16 ? tokens - 16 : 0); }

TEST(StepTimesTest, TimesBetweenTwoSizesAreALine) {
  StepTimes times;
  EXPECT_EQ(times.TimeOf(5), 0);
  times.Learn(16, Ns(16));
  times.Learn(64, Ns(64));
  EXPECT_DOUBLE_EQ(times.TimeOf(16), 32000);
  EXPECT_DOUBLE_EQ(times.TimeOf(40), 56000);
  EXPECT_DOUBLE_EQ(times.TimeOf(64), 80000);
  EXPECT_DOUBLE_EQ(times.TimeOf(128), 160000);
  EXPECT_DOUBLE_EQ(times.TimeOf(8), 16000);
}

TEST(StepTimesTest, PromptsGetTheTokensThatAddNoMoreThanTheStall) {
  StepTimes times;
  // Without a measurement all fit.
  EXPECT_EQ(times.MoreWithin(8, 20000, 16, 512), 512);
  for (const int64_t tokens : {16, 32, 64, 128, 512}) times.Learn(tokens, Ns(tokens));
  EXPECT_EQ(times.MoreWithin(16, 20000, 16, 512), 20);
  EXPECT_EQ(times.MoreWithin(64, 20000, 16, 512), 20);
  EXPECT_EQ(times.MoreWithin(16, 1000, 16, 512), 16);
  EXPECT_EQ(times.MoreWithin(16, int64_t{1} << 40, 16, 512), 512);
  // A step that is smaller than the least.
  EXPECT_EQ(times.MoreWithin(16, 20000, 16, 4), 4);
}

TEST(StepTimesTest, ABusyMachineShowsLittleInTheMean) {
  StepTimes times;
  for (int i = 0; i < 50; ++i) times.Learn(64, i % 4 == 3 ? 10 * Ns(64) : Ns(64));
  EXPECT_LT(times.TimeOf(64), 1.6 * static_cast<double>(Ns(64)));
  for (int i = 0; i < 100; ++i) times.Learn(64, 3 * Ns(64));
  EXPECT_NEAR(times.TimeOf(64), 3.0 * static_cast<double>(Ns(64)), 100);
  // A size whose only step was a slow one.
  times.Learn(512, 100 * Ns(512));
  EXPECT_LE(times.TimeOf(512), 8 * times.TimeOf(64));
  times.Learn(8, 100 * Ns(64));
  EXPECT_LE(times.TimeOf(8), times.TimeOf(64));
}

}  // namespace
}  // namespace reprise
