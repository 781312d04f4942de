#include "runtime/engine/types/run_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/testing/time_units.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

Tensor Bytes(int64_t count) {
  return Tensor::FromVector<uint8_t>(DType::kUInt8, {count}, std::vector<uint8_t>(count, 7));
}

TEST(RunControlTest, GoesOnUntilItsTimeIsOverOrNobodyWaits) {
  FakeClock clock;
  StopFlag gone;
  RunControl control(clock, {.max_ns = 10 * kMs}, &gone);
  clock.AdvanceNs(500 * kMs);  // time before the beginning does not count
  control.Begin(3 * kMs);
  const auto label = [] { return "Loop 'l'"; };
  clock.AdvanceNs(7 * kMs);
  EXPECT_TRUE(control.Check(label).ok());
  clock.AdvanceNs(kMs);
  const absl::Status late = control.Check(label);
  EXPECT_TRUE(absl::IsResourceExhausted(late));
  EXPECT_THAT(std::string(late.message()), HasSubstr("Loop 'l': the request has computed for 11"));
  EXPECT_THAT(std::string(late.message()), HasSubstr("the limit is 10"));
  gone.Stop();
  EXPECT_TRUE(absl::IsCancelled(control.Check(label)));
}

TEST(RunControlTest, ANodeThatRunsAsAWholeEndsWithItsRun) {
  FakeClock clock;
  StopFlag gone;
  RunControl control(clock, {.max_ns = 10 * kMs, .max_bytes = 100}, &gone);
  control.Begin();
  RunWatch watch(control);
  EXPECT_FALSE(watch.Ends());
  clock.AdvanceNs(11 * kMs);
  EXPECT_TRUE(watch.Ends());
  control.Begin();
  EXPECT_FALSE(watch.Ends());
  gone.Stop();
  EXPECT_TRUE(watch.Ends());
}

TEST(RunControlTest, ANodeMayHoldWhatIsLeftForItself) {
  FakeClock clock;
  RunControl control(clock, {.max_bytes = 100});
  EXPECT_EQ(control.BytesForOneNode(), 100);
  const Tensor made = *control.Keep(Bytes(60), "'a'");
  EXPECT_EQ(control.BytesForOneNode(), 40);
  control.NoteTooMuch(70);
  const absl::Status ended = control.Ended("DFT 'd'");
  EXPECT_TRUE(absl::IsInvalidArgument(ended));
  EXPECT_EQ(ended.message(),
            "DFT 'd': it needs 70 bytes besides its operands, and "
            "reprise.max_request_mb leaves 40");
  EXPECT_EQ(RunControl(clock, {}).BytesForOneNode(), 0);
}

TEST(RunControlTest, WithoutLimitsItGoesOn) {
  FakeClock clock;
  RunControl control(clock, {});
  control.Begin();
  clock.AdvanceNs(int64_t{1} << 60);
  EXPECT_TRUE(control.Check([] { return "n"; }).ok());
  EXPECT_TRUE(control.Admit(int64_t{1} << 60, "n").ok());
  EXPECT_EQ(control.BytesLeft(100), 100);
}

TEST(RunControlTest, WhatIsMadeCountsUntilItsLastCopyIsGone) {
  FakeClock clock;
  std::optional<RunControl> control;
  control.emplace(clock, RunControl::Limits{.max_bytes = 100});
  std::optional<Tensor> one = *control->Keep(Bytes(60), "'a'");
  EXPECT_EQ(control->BytesLeft(1000), 40);
  EXPECT_EQ(control->BytesLeft(30), 30);
  std::optional<Tensor> copy = one;
  one.reset();
  EXPECT_EQ(control->BytesLeft(1000), 40);
  const absl::Status much = control->Admit(41, "'big'");
  EXPECT_TRUE(absl::IsInvalidArgument(much));
  EXPECT_EQ(much.message(),
            "'big' takes 41 bytes besides 60 that the request has made, the limit is 100 "
            "(reprise.max_request_mb)");
  EXPECT_TRUE(control->Admit(40, "'big'").ok());
  EXPECT_EQ(copy->span<uint8_t>()[59], 7);
  copy.reset();
  EXPECT_EQ(control->BytesLeft(1000), 100);
  // An answer may outlive the run.
  const Tensor last = *control->Keep(Bytes(8), "'last'");
  control.reset();
  EXPECT_EQ(last.span<uint8_t>()[7], 7);
}

TEST(RunControlTest, AllRunsTakeFromOneAccount) {
  FakeClock clock;
  MemoryBudget all(100);
  RunControl one(clock, {.max_bytes = 80, .all = &all});
  RunControl other(clock, {.max_bytes = 80, .all = &all});
  std::optional<Tensor> made = *one.Keep(Bytes(60), "'a'");
  EXPECT_EQ(all.used(), 60);
  EXPECT_EQ(other.BytesLeft(1000), 40);
  EXPECT_EQ(other.BytesForOneNode(), 40);
  EXPECT_EQ(one.BytesLeft(1000), 20);
  EXPECT_STREQ(one.LimitName(), "reprise.max_request_mb");
  EXPECT_STREQ(other.LimitName(), "--data-memory-mb");
  const absl::Status much = other.Admit(41, "'big'");
  EXPECT_TRUE(absl::IsResourceExhausted(much));
  EXPECT_EQ(much.message(),
            "'big' takes 41 bytes besides 0 that the request has made, all requests have made 60, "
            "their limit is 100 (--data-memory-mb)");
  // More than the limit of all runs together never fits; memory that others hold now may fit later.
  EXPECT_TRUE(absl::IsInvalidArgument(RunControl(clock, {.all = &all}).Admit(101, "'big'")));
  EXPECT_TRUE(absl::IsResourceExhausted(RunControl(clock, {.all = &all}).Admit(100, "'big'")));
  // Another run has taken memory since it was admitted.
  EXPECT_EQ(other.Keep(Bytes(41), "'big'").status(), much);
  EXPECT_EQ(all.used(), 60);
  made.reset();
  EXPECT_EQ(all.used(), 0);
  EXPECT_TRUE(other.Keep(Bytes(41), "'big'").ok());
  EXPECT_EQ(other.most_bytes(), 41);
}

}  // namespace
}  // namespace reprise
