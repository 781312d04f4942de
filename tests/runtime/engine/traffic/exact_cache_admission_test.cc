#include "runtime/engine/traffic/exact_cache_admission.h"

#include <gtest/gtest.h>

#include "tests/testing/time_units.h"

namespace reprise {
namespace {

int64_t SpendAll(ExactCacheAdmission& budget, int64_t capture_ns) {
  int64_t spent = 0;
  while (budget.Spend(capture_ns)) ++spent;
  return spent;
}

TEST(ExactCacheAdmissionTest, SomeAreFreeAndThenReplaysEarnThem) {
  ExactCacheAdmission budget;
  EXPECT_EQ(SpendAll(budget, 10 * kMs), ExactCacheAdmission::kFree);
  for (int i = 0; i < 99; ++i) budget.Earn(100 * kMs, 10 * kMs);
  EXPECT_FALSE(budget.Spend(10 * kMs));
  budget.Earn(100 * kMs, 10 * kMs);
  EXPECT_EQ(SpendAll(budget, 10 * kMs), 1);
}

TEST(ExactCacheAdmissionTest, CapturesTakeAThousandthOfAllReplaysWhateverComes) {
  ExactCacheAdmission budget;
  SpendAll(budget, 5 * kMs);
  int64_t spent = 0;
  for (int i = 0; i < 100'000; ++i) {
    budget.Earn(20 * kMs, 5 * kMs);
    spent += budget.Spend(5 * kMs);
  }
  EXPECT_EQ(spent, 100'000 * 20 / 5 / ExactCacheAdmission::kReplayNsForNs);
}

TEST(ExactCacheAdmissionTest, LongQuietTrafficDoesNotEarnMoreThanWasFree) {
  ExactCacheAdmission budget;
  SpendAll(budget, kMs);
  for (int i = 0; i < 1000; ++i) budget.Earn(int64_t{1000} * kMs, kMs);
  EXPECT_EQ(SpendAll(budget, kMs), ExactCacheAdmission::kFree);
}

}  // namespace
}  // namespace reprise
