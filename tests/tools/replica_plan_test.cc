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
  EXPECT_THAT(ReplicaText(*loads, traffic, {.p99_ms = 80, .memory_mb = 500}),
              HasSubstr(" servers keep 99 % within 80 ms: "));
}

TEST(ReplicaPlanTest, PercentileThatNoServersKeepIsRefused) {
  const auto loads = PlanReplicas(Exponential(50), 20);
  EXPECT_EQ(loads.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loads.status().message()), HasSubstr("takes 46"));
  const auto many = PlanReplicas(Exponential(5000), 80, 40);
  EXPECT_THAT(std::string(many.status().message()), HasSubstr("take 50 servers, more than 40"));
}

TEST(ReplicaPlanTest, ServersOnFewerCoresSlowEachOther) {
  // Four streams on one core that all share alike are the M/M/1 queue with processor sharing, whose
  // mean is that of the queue in order: 10 / (1 - 0.5) ms.
  ReplicaTraffic traffic = Exponential(50);
  traffic.streams = 64;
  traffic.cores = 1;
  const ReplicaLoad shared = SimulateReplicas(traffic, 4);
  EXPECT_NEAR(shared.utilization, 0.5, 0.005);
  EXPECT_LT(shared.p50_ms, std::log(2) * 20);
  EXPECT_GT(shared.p99_ms, std::log(100) * 20);
  // As many cores as streams are no limit.
  traffic.streams = 1;
  traffic.cores = 4;
  const ReplicaLoad own = SimulateReplicas(Exponential(50), 4);
  EXPECT_NEAR(SimulateReplicas(traffic, 4).p99_ms, own.p99_ms, 1e-6);
}

TEST(ReplicaPlanTest, BusyCoresThatShareTheirMemoryAreSlower) {
  ReplicaTraffic traffic = Exponential(0.01);
  traffic.cores = 2;
  traffic.slowdown = 1.5;
  // One request at a time has a core of its own.
  EXPECT_NEAR(SimulateReplicas(traffic, 2).p50_ms, SimulateReplicas(Exponential(0.01), 2).p50_ms,
              0.1);
  traffic.rate = 120;
  const ReplicaLoad slow = SimulateReplicas(traffic, 2);
  EXPECT_NEAR(slow.utilization, 0.9, 0.01);
  traffic.slowdown = 1;
  const ReplicaLoad quick = SimulateReplicas(traffic, 2);
  EXPECT_GT(slow.p50_ms, 1.3 * quick.p50_ms);
}

TEST(ReplicaPlanTest, OverheadTakesItsTimeAndTheSharedCores) {
  ReplicaTraffic traffic = Exponential(1);
  traffic.overhead_ms = 5;
  EXPECT_NEAR(SimulateReplicas(traffic, 4).p50_ms, SimulateReplicas(Exponential(1), 4).p50_ms + 5,
              0.1);
  traffic.latency_ms = 7;
  EXPECT_NEAR(SimulateReplicas(traffic, 4).p50_ms, SimulateReplicas(Exponential(1), 4).p50_ms + 12,
              0.1);
  traffic.rate = 100;
  traffic.cores = 2;
  EXPECT_NEAR(SimulateReplicas(traffic, 4).utilization, 0.75, 0.005);
  traffic.rate = 140;
  const auto busy = PlanReplicas(traffic, 500);
  EXPECT_THAT(std::string(busy.status().message()), HasSubstr("keep 2 cores busy for 105 %"));
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
