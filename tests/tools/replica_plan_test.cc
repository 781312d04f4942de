#include "tools/reports/replica_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

// Lengths whose times are exponential with a mean of 10 ms.
ReplicaTraffic Exponential(double rate) {
  ReplicaTraffic traffic = {.rate = rate};
  for (int i = 0; i < 4000; ++i) {
    traffic.lengths.push_back({std::lround(-std::log(1 - (i + 0.5) / 4000) * 1e6), 1});
  }
  traffic.ms = [](int64_t length) { return static_cast<double>(length) * 1e-5; };
  return traffic;
}

TEST(ReplicaPlanTest, OneServerIsTheQueueOfTheBooks) {
  // M/M/1: times in the system are exponential with a mean of 10 / (1 - 0.5) ms.
  const ReplicaLoad load = SimulateReplicas(Exponential(50), 1);
  EXPECT_NEAR(load.utilization, 0.5, 0.005);
  EXPECT_NEAR(load.p50_ms, std::log(2) * 20, 0.5);
  EXPECT_NEAR(load.p99_ms, std::log(100) * 20, 5);
}

TEST(ReplicaPlanTest, StreamsOfAServerShareItsQueue) {
  // M/M/2 at 0.5: a third waits.
  ReplicaTraffic traffic = Exponential(100);
  traffic.streams = 2;
  const ReplicaLoad pooled = SimulateReplicas(traffic, 1);
  EXPECT_NEAR(pooled.utilization, 0.5, 0.005);
  EXPECT_LT(pooled.p99_ms, SimulateReplicas(Exponential(50), 1).p99_ms);
}

TEST(ReplicaPlanTest, FewestUnderWayIsNearlyOneQueueForAll) {
  ReplicaTraffic traffic = Exponential(8 * 80);
  const ReplicaLoad spread = SimulateReplicas(traffic, 8);
  traffic.streams = 8;
  const ReplicaLoad pooled = SimulateReplicas(traffic, 1);
  EXPECT_GT(spread.p99_ms, pooled.p99_ms);
  EXPECT_LT(spread.p99_ms, 1.6 * pooled.p99_ms);
  EXPECT_LT(spread.p99_ms, 0.5 * SimulateReplicas(Exponential(80), 1).p99_ms);
}

TEST(ReplicaPlanTest, FewestServersThatKeepThePercentileAreFound) {
  const ReplicaTraffic traffic = Exponential(500);
  const auto loads = PlanReplicas(traffic, 80);
  ASSERT_TRUE(loads.ok()) << loads.status();
  EXPECT_EQ(loads->front().replicas, 5) << "fewer have no time for all requests";
  const ReplicaLoad& answer = (*loads)[loads->size() - 2];
  EXPECT_LE(answer.p99_ms, 80);
  for (size_t i = 0; i + 2 < loads->size(); ++i) EXPECT_GT((*loads)[i].p99_ms, 80);
  EXPECT_EQ(loads->back().replicas, answer.replicas + 1);
  EXPECT_THAT(ReplicaText(*loads, traffic, 80, 500),
              HasSubstr(" servers keep 99 % within 80 ms: "));
}

TEST(ReplicaPlanTest, PercentileThatNoServersKeepIsRefused) {
  const auto loads = PlanReplicas(Exponential(50), 20);
  EXPECT_EQ(loads.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loads.status().message()), HasSubstr("takes 46"));
  const auto many = PlanReplicas(Exponential(5000), 80, 40);
  EXPECT_THAT(std::string(many.status().message()), HasSubstr("take 50 servers, more than 40"));
}

TEST(ReplicaPlanTest, LengthsComeAsOftenAsTheirWeights) {
  ReplicaTraffic traffic = {.lengths = {{1, 98}, {1000, 2}}, .rate = 0.01};
  traffic.ms = [](int64_t length) { return static_cast<double>(length); };
  const ReplicaLoad load = SimulateReplicas(traffic, 1);
  EXPECT_NEAR(load.utilization, 0.01 * 20.98 / 1000, 1e-9);
  EXPECT_EQ(load.p50_ms, 1);
  EXPECT_EQ(load.p99_ms, 1000);
}

TEST(ReplicaPlanTest, TimesAreLinesBetweenPoints) {
  const auto times = ParseTimes("10:1,20:4");
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_DOUBLE_EQ((*times)(5), 0.5);
  EXPECT_DOUBLE_EQ((*times)(10), 1);
  EXPECT_DOUBLE_EQ((*times)(15), 2.5);
  EXPECT_DOUBLE_EQ((*times)(30), 7);
  for (const char* wrong : {"", "10", "10:x", "10:1,10:2", "10:-1", "20:1,10:2"}) {
    EXPECT_FALSE(ParseTimes(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace reprise::cli
