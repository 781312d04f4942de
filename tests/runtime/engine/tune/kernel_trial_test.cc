#include "runtime/engine/tune/kernel_trial.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(KernelTrialTest, ClearlyFasterKernelIsTaken) {
  KernelTrial trial({"usual", "faster", "slower"});
  for (const int64_t noise : {7, 0, 3}) {
    trial.Add(0, 100 + noise);
    trial.Add(1, 90 + noise);
    trial.Add(2, 110 + noise);
    trial.EndRound();
  }
  EXPECT_EQ(trial.kernel(trial.Best()), "faster");
  EXPECT_EQ(trial.NsOf(1), 90);
}

TEST(KernelTrialTest, GainWithinTheNoiseChangesNothing) {
  KernelTrial trial({"usual", "faster"});
  trial.Add(0, 1000);
  trial.Add(1, 975);
  trial.EndRound();
  EXPECT_EQ(trial.Best(), 0u);
  trial.Add(1, 970);
  EXPECT_EQ(trial.Best(), 1u);
}

TEST(KernelTrialTest, FastestOfTwoWorthwhileOnesIsTaken) {
  KernelTrial trial({"usual", "good", "better"});
  trial.Add(0, 100);
  trial.Add(1, 80);
  trial.Add(2, 70);
  EXPECT_EQ(trial.kernel(trial.Best()), "better");
}

TEST(KernelTrialTest, KernelOfWhichMoreIsDemandedGivesWayToALesserOne) {
  KernelTrial trial({"usual", "own", "foreign"});
  trial.Demand(2, 1.5);
  trial.Add(0, 100);
  trial.Add(1, 90);
  trial.Add(2, 70);
  EXPECT_EQ(trial.kernel(trial.Best()), "own");
  trial.Add(2, 60);
  EXPECT_EQ(trial.kernel(trial.Best()), "foreign");
}

TEST(KernelTrialTest, HopelessKernelHasNoFurtherTurnButTheFirstAlwaysHas) {
  KernelTrial trial({"usual", "fast", "hopeless"});
  trial.Add(0, 500);
  trial.Add(1, 100);
  trial.Add(2, 200);
  trial.EndRound();
  EXPECT_TRUE(trial.Wants(0));
  EXPECT_TRUE(trial.Wants(1));
  EXPECT_FALSE(trial.Wants(2));
  EXPECT_FALSE(trial.Wants(3));
}

TEST(KernelTrialTest, WithoutTimesTheFirstStays) {
  KernelTrial trial({"usual", "other"});
  trial.EndRound();
  EXPECT_EQ(trial.Best(), 0u);
  EXPECT_TRUE(trial.Wants(1));
}

}  // namespace
}  // namespace reprise
