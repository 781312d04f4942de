#include "runtime/engine/replay/idle_policy.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

constexpr int64_t kNow = 7'000'000;

TEST(IdlePolicyTest, AHelperStaysAsLongAsReplaysInARowAreApartAndNotLonger) {
  IdlePolicy rule(kNow);
  EXPECT_TRUE(rule.Stays(1, 1, kNow));
  EXPECT_TRUE(rule.Stays(1, 1, kNow + IdlePolicy::kLongestNs - 1));
  EXPECT_FALSE(rule.Stays(1, 1, kNow + IdlePolicy::kLongestNs));
}

TEST(IdlePolicyTest, WithMoreHelpersThanFreeCoresItParksAtTheSecondLook) {
  IdlePolicy rule(kNow);
  EXPECT_TRUE(rule.Stays(1, 0, kNow));
  EXPECT_FALSE(rule.Stays(1, 0, kNow));
  IdlePolicy one_of_three(kNow);
  EXPECT_TRUE(one_of_three.Stays(3, 2, kNow));
  EXPECT_FALSE(one_of_three.Stays(3, 2, kNow));
}

TEST(IdlePolicyTest, ACoreThatWasTakenForAMomentDoesNotParkIt) {
  IdlePolicy rule(kNow);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(rule.Stays(2, 1, kNow));
    EXPECT_TRUE(rule.Stays(2, 2, kNow));
  }
}

}  // namespace
}  // namespace reprise
