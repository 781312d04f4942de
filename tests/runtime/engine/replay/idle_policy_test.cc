#include "runtime/engine/replay/idle_policy.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

constexpr int64_t kNow = 7'000'000;

TEST(LingerRuleTest, AHelperStaysAsLongAsReplaysInARowAreApartAndNotLonger) {
  LingerRule rule(kNow);
  EXPECT_TRUE(rule.Stays(1, 1, kNow));
  EXPECT_TRUE(rule.Stays(1, 1, kNow + LingerRule::kLongestNs - 1));
  EXPECT_FALSE(rule.Stays(1, 1, kNow + LingerRule::kLongestNs));
}

TEST(LingerRuleTest, WithMoreHelpersThanFreeCoresItParksAtTheSecondLook) {
  LingerRule rule(kNow);
  EXPECT_TRUE(rule.Stays(1, 0, kNow));
  EXPECT_FALSE(rule.Stays(1, 0, kNow));
  LingerRule one_of_three(kNow);
  EXPECT_TRUE(one_of_three.Stays(3, 2, kNow));
  EXPECT_FALSE(one_of_three.Stays(3, 2, kNow));
}

TEST(LingerRuleTest, ACoreThatWasTakenForAMomentDoesNotParkIt) {
  LingerRule rule(kNow);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(rule.Stays(2, 1, kNow));
    EXPECT_TRUE(rule.Stays(2, 2, kNow));
  }
}

}  // namespace
}  // namespace reprise
