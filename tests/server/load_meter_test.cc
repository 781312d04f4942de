#include "server/load_meter.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

constexpr int64_t kMeterSecond = 1'000'000'000;

TEST(LoadMeterTest, RatesAreOfTheLastSecond) {
  LoadMeter meter(4);
  const MachineShare share = {.cpus = 2, .memory_bytes = 1000, .resident_bytes = 250};
  meter.Report({.now_ns = kMeterSecond}, share);
  meter.Report(
      {.now_ns = 60 * kMeterSecond, .busy_ns = 60 * kMeterSecond, .streams = 2, .requests = 100},
      share);
  const auto report = meter.Report({.now_ns = 61 * kMeterSecond,
                                    .busy_ns = 61 * kMeterSecond,
                                    .streams = 2,
                                    .cpu_ns = kMeterSecond / 2,
                                    .requests = 130,
                                    .errors = 3,
                                    .misses = 7,
                                    .requests_waiting = 4,
                                    .tokens_waiting = 512,
                                    .tokens_running = 64},
                                   share);
  EXPECT_DOUBLE_EQ(report.rps_fractional(), 30);
  EXPECT_DOUBLE_EQ(report.eps(), 3);
  EXPECT_DOUBLE_EQ(report.cpu_utilization(), 0.25);
  EXPECT_DOUBLE_EQ(report.mem_utilization(), 0.25);
  EXPECT_DOUBLE_EQ(report.application_utilization(), 0.5);
  EXPECT_EQ(report.named_metrics().at("queue_requests"), 4);
  EXPECT_EQ(report.named_metrics().at("queue_tokens"), 512);
  EXPECT_EQ(report.named_metrics().at("running_tokens"), 64);
  EXPECT_EQ(report.named_metrics().at("misses"), 7);
  EXPECT_EQ(report.named_metrics().count("pages_used"), 0) << "no model has pages";
}

TEST(LoadMeterTest, StepsOfDecodersShowAsCpuTime) {
  LoadMeter meter(2);
  const MachineShare share = {.cpus = 0.5};
  meter.Report({.now_ns = 0}, share);
  const auto report = meter.Report({.now_ns = kMeterSecond,
                                    .streams = 2,
                                    .cpu_ns = kMeterSecond / 4,
                                    .pages_used = 30,
                                    .pages = 40},
                                   share);
  EXPECT_DOUBLE_EQ(report.application_utilization(), 0.5);
  EXPECT_EQ(report.named_metrics().at("pages_used"), 30);
  EXPECT_DOUBLE_EQ(report.named_metrics().at("kv_cache_utilization"), 0.75);
}

TEST(LoadMeterTest, ProcessHasAShareOfItsMachine) {
  const MachineShare share = ReadMachineShare(3);
  EXPECT_GT(share.cpus, 0);
  EXPECT_LE(share.cpus, 3);
  EXPECT_GT(share.resident_bytes, 1 << 20);
  EXPECT_GT(share.memory_bytes, share.resident_bytes);
  const int64_t before = ProcessCpuNs();
  volatile int64_t sum = 0;
  for (int64_t i = 0; i < 1'000'000; ++i) sum = sum + i;
  EXPECT_GT(ProcessCpuNs(), before);
}

}  // namespace
}  // namespace reprise
